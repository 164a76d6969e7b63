"""The base classes of pipes, `IterDataPipe` and `MapDataPipe`, with the registry of functional forms.

A pipe is a data set made of another one; `pipe.map(f).batch(2)` makes a graph of them. A functional form is looked up in
`functions`, which `functional_datapipe` fills; what a pipe's iterator does beyond its `__iter__` stands in `_hook_iterator.py`.
"""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from ..._import_utils import import_dill
from ..dataset import Dataset, IterableDataset
from ._hook_iterator import _SnapshotState, hook_iterator

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
# Functional forms whose results are no traced data frames.
_UNTRACED = ("batch", "groupby", "_dataframes_as_tuples", "trace_as_dataframe")


class DataChunk(list[_T]):
    """A batch: a list that pipes tell from lists that are samples."""

    def __init__(self, items: Iterable[_T]) -> None:
        self.items = list(items)
        super().__init__(self.items)

    def as_str(self, indent: str = "") -> str:
        """The elements in brackets, after `indent`."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def __iter__(self) -> Iterator[_T]:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator[_T]:
        """The elements as they were given, also where `__iter__` makes others of them."""
        yield from self.items


class _Pipe:
    """What both kinds of pipes have: functional forms, and hooks on how they are pickled and shown."""

    functions: ClassVar[dict[str, Callable[..., Any]]]
    reduce_ex_hook: ClassVar[Callable[[Any], Any] | None] = None
    getstate_hook: ClassVar[Callable[[Any], Any] | None] = None
    str_hook: ClassVar[Callable[[Any], str] | None] = None
    repr_hook: ClassVar[Callable[[Any], str] | None] = None
    # Attributes that are no part of the state: they begin anew in a copy.
    _transient: ClassVar[tuple[str, ...]] = ()

    def __getattr__(self, name: str) -> Any:
        if name in self.functions:
            form = functools.partial(self.functions[name], self)
            return functools.update_wrapper(form, self.functions[name], assigned=("__doc__",))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self.functions]

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Makes a function of a pipe a method of all pipes of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def _register(cls, name, made, function):
        if name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {name} as it is already taken")
        cls.functions[name] = functools.update_wrapper(function, made, assigned=("__doc__",))

    def __getstate__(self) -> Any:
        state = {name: value for name, value in self.__dict__.items() if name not in self._transient}
        hook = type(self).getstate_hook
        return state if hook is None else hook(state)

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass  # The hook leaves this pipe as it is.
        return super().__reduce_ex__(protocol)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Sets what makes of the state of a pipe the one that is pickled. RuntimeError: one is set."""
        cls._set_hook("getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Sets what reduces pipes when they are pickled. RuntimeError: one is set."""
        cls._set_hook("reduce_ex_hook", hook_fn)

    @classmethod
    def _set_hook(cls, name, hook):
        if hook is not None and getattr(cls, name) is not None:
            raise RuntimeError(f"Attempt to override existing {name}")
        setattr(cls, name, hook)

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __str__(self) -> str:
        hook = type(self).str_hook
        return type(self).__qualname__ if hook is None else hook(self)


class IterDataPipe(_Pipe, IterableDataset[_T_co]):
    """A stream of samples that is made of other ones. Subclasses define `__iter__`.

    One iterator of a pipe is live at a time: a new one starts from the beginning and invalidates the one before, which then
    raises RuntimeError. Where several are needed, `fork` the pipe. Subclasses with a state define `reset`, which each new
    iterator calls.

    Example:
        >>> from rustgrad.utils.data.datapipes.iter import IterableWrapper, Mapper
        >>> list(IterableWrapper(range(3)).map(lambda x: x * 10).batch(2))
        [[0, 10], [20]]
        >>> list(Mapper(IterableWrapper(range(3)), lambda x: x * 10))
        [0, 10, 20]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator: Iterator[Any] | None = None
    # Whether iterators are numbered by the pipe that all children share.
    _is_child_datapipe = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        hook_iterator(cls)

    def __iter__(self) -> Iterator[_T_co]:
        return self  # type: ignore[return-value]

    def reset(self) -> None:
        """Called before each new iterator; by default nothing."""

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Makes a class of pipes a method of all pipes. Exception: the name is taken."""

        def make(source: Any, *args: Any, **kwargs: Any) -> Any:
            made = cls_to_register(source, *args, **kwargs)
            traced = enable_df_api_tracing or isinstance(source, DFIterDataPipe)
            if traced and isinstance(made, IterDataPipe) and function_name not in _UNTRACED:
                return made.trace_as_dataframe()
            return made

        cls._register(function_name, cls_to_register, make)


hook_iterator(IterDataPipe)


class DFIterDataPipe(IterDataPipe[Any]):
    """A pipe of data frames."""

    def _is_dfpipe(self):
        return True


class MapDataPipe(_Pipe, Dataset[_T_co]):
    """A map from an index or key to a sample, made of other ones. Subclasses define `__getitem__`, and `__len__`.

    Example:
        >>> from rustgrad.utils.data.datapipes.map import SequenceWrapper
        >>> list(SequenceWrapper(range(3)).map(lambda x: x + 1).batch(2))
        [[1, 2], [3]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any) -> None:
        """Makes a class of pipes a method of all pipes. Exception: the name is taken."""
        cls._register(function_name, cls_to_register, functools.partial(cls_to_register))


class _DataPipeSerializationWrapper:
    """Around the pipe of a `DataLoader`: where `dill` is installed, workers get lambdas and local functions too."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __len__(self) -> int:
        try:
            return len(self._datapipe)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error

    def __reduce_ex__(self, protocol: Any) -> Any:
        if (dill := import_dill()) is not None:
            try:
                pickle.dumps(self._datapipe)
            except Exception:
                return _from_dill, (type(self), dill.dumps(self._datapipe))
        return super().__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        # Workers that are threads each need a graph of their own.
        return type(self)(copy.deepcopy(self._datapipe))


def _from_dill(cls, pickled):
    return cls(import_dill().loads(pickled))


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe[_T_co]):
    def __iter__(self) -> Iterator[_T_co]:
        return iter(self._datapipe)


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe[_T_co]):
    def __getitem__(self, index: Any) -> _T_co:
        return self._datapipe[index]
