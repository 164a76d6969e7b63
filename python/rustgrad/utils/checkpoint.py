"""`checkpoint`: a part of a model that saves only its inputs and is recomputed when backward needs the rest.

Saved tensors of the part are numbered instead of kept. The first one that backward needs makes the part run
again, from the same random state and under the same autocast, and the tensors saved then are returned by number.
The reentrant variant, a custom function, is in `_checkpoint_reentrant`.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from .. import _C
from .._absent import getattr_of
from .._base import Tensor
from ..autograd.grad_mode import enable_grad, is_grad_enabled
from ..autograd.graph import saved_tensors_hooks
from ._checkpoint_reentrant import CheckpointFunction, check_backward_validity, detach_variable
from ._checkpoint_state import Surroundings, packing

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

# Set by the context managers; None leaves the choice to the call.
_early_stop: bool | None = None
_debug: bool | None = None
_PASS_IT = (
    "{}: the use_reentrant parameter should be passed explicitly. In a future release, calling checkpoint without "
    "use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the current "
    "default behavior, you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
    "two variants."
)
_TIP = (
    "Tip: To see a more detailed error message, either pass `debug=True` to `torch.utils.checkpoint.checkpoint(...)` or "
    "wrap the code block with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` before checkpointing"
)


class CheckpointError(RuntimeError):
    """The recomputation saved other tensors."""


class CheckpointPolicy(enum.Enum):
    """What a policy of selective checkpointing answers for an op."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy of selective checkpointing is called with, before the op and its arguments."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | list[Any], allow_cache_entry_mutation: bool = False
) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """For `checkpoint(.., use_reentrant=False, context_fn=..)`: the results of some ops are kept instead of recomputed.

    Args:
        policy_fn_or_list (callable or list): `policy(ctx, op, *args, **kwargs)` returns a `CheckpointPolicy`, or True to save;
            `op` is the op of `ops.aten` that a call of a function stands for (`mm` or `addmm` of `linear`; of attention several are
            tried). Or a list of ops to save, such as `[ops.aten.mm.default]`.
        allow_cache_entry_mutation (bool): whether results that are kept may be changed in place meanwhile.

    Returns:
        Contexts for the first computation and for the recomputation. Views and results of in-place ops are recomputed.

    Raises:
        TypeError: `policy_fn_or_list` is neither a function nor a list. ValueError: an item of the list is no overload.
        RuntimeError: (in backward) a second backward, or a result was changed in place.
    """
    from ._checkpoint_selective import contexts

    return contexts(policy_fn_or_list, allow_cache_entry_mutation)


class DefaultDeviceType:
    """The kind of device whose random state is kept where no argument is on one."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the kind of device."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The kind of device: "cpu" unless set."""
        return DefaultDeviceType._default_device_type or "cpu"


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """(device numbers, random states) of the tensors that are on a GPU. One generator serves all GPUs."""
    devices = [a.get_device() for a in args if isinstance(a, Tensor) and a.device.type not in ("cpu", "meta")]
    return devices, [_C._rng_states()[1] for _ in devices]


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Sets the random state of GPUs to the last of those that `get_device_states` gave."""
    for _, state in zip(devices, states, strict=False):
        _C._set_rng_states(None, state)


class _Stop(Exception):
    """All needed tensors have been recomputed."""


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """The default contexts of computation and recomputation: none."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether a recomputation stops once it has saved as many tensors as before; it overrides the argument of calls."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Whether errors of a recomputation list the ops of both computations; it overrides the argument of calls unless None."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


class _Logs:
    """The ops of the first computation and of the last recomputation."""

    def __init__(self):
        self.first, self.again = [], []

    @contextlib.contextmanager
    def record(self, name):
        _C._start_op_log()
        try:
            yield
        finally:
            setattr(self, name, _C._stop_op_log())

    def error(self, problem):
        text = (
            "An error happened while unpacking tensors; dumping logs of latest computation\nbecause you passed `debug=True` "
            "to `torch.utils.checkpoint.checkpoint()`.\n"
        )
        for name, lines in (("original", self.first), ("recompute", self.again)):
            text += f"\nOperations executed during {name} forward:\n\n"
            text += "".join(f"{line}   ({i} of {len(lines)} in {name})\n" for i, line in enumerate(lines, 1))
        return CheckpointError(f"{text}\n{problem}")


def _facts(tensor):
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


class _Part:
    """A computed part, its saved tensors, and how to recompute it."""

    def __init__(self, function, args, kwargs, context, preserve_rng_state, check, early_stop, logs):
        self.run = functools.partial(function, *args, **kwargs)
        self.inputs = [(t, t._version) for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
        self.context = context
        self.surroundings = Surroundings(preserve_rng_state)
        self.check = check
        self.early_stop = early_stop
        self.logs = logs
        self.facts = []
        self.values = {}
        self.complete = False

    def pack(self, tensor):
        self.facts.append(_facts(tensor))
        return len(self.facts) - 1

    def unpack(self, number):
        if number not in self.values:
            try:
                self.compute_again()
            except CheckpointError as error:
                if self.logs is None:
                    raise
                raise self.logs.error(error) from error
        # Each is needed once per pass; another pass recomputes the part.
        return self.values.pop(number)

    def compute_again(self):
        for tensor, version in self.inputs:
            if tensor._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"[{tensor.type()} {list(tensor.shape)}], an input of a checkpoint, is at version "
                    f"{tensor._version}; expected version {version} instead."
                )
        values, saved = {}, len(self.facts)

        def pack(tensor):
            if len(values) == saved:
                if not self.complete:
                    # A backward inside the part: what is saved after it is not needed yet.
                    return tensor.detach()
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass, which saved {saved}.\n{_TIP}"
                )
            # One without a gradient stays the object that it is.
            kept = values[len(values)] = tensor.detach() if tensor.requires_grad else tensor
            if self.early_stop and len(values) == saved:
                raise _Stop
            return kept

        with contextlib.suppress(_Stop), self.surroundings.again(), enable_grad(), self.context():
            with saved_tensors_hooks(pack, lambda kept: kept), packing.by(pack):
                self.run()
        self._compare(values)
        self.values = values

    def _compare(self, values):
        if len(values) != len(self.facts):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.facts)}\n"
                f"Number of tensors saved during recomputation: {len(values)}.\n{_TIP}"
            )
        found = [(i, facts, _facts(values[i])) for i, facts in enumerate(self.facts)] if self.check else []
        wrong = "".join(
            f"tensor at position {i}:\nsaved metadata: {before}\nrecomputed metadata: {now}\n"
            for i, before, now in found
            if before != now
        )
        if wrong:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during "
                f"the forward pass.\n{wrong}{_TIP}"
            )


def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, recomputing its intermediate results in backward instead of saving them.

    Without a function it returns a decorator.

    Args:
        use_reentrant (bool): should be passed. True, the default, runs a backward inside backward: an argument must require
            grad, keyword arguments are refused, and `autograd.grad` does not work. False has none of these limits.
        preserve_rng_state (bool): whether the recomputation draws the same random numbers.
        context_fn (callable): returns two context managers, for the first computation and for each recomputation.
        determinism_check (str): "default" compares shapes, dtypes and devices of what is saved, "none" does not.
        debug (bool): whether errors of the recomputation list the ops of both computations.
        early_stop (bool): whether the recomputation ends with the last saved tensor.

    Raises:
        CheckpointError: (in backward) the recomputation saved other tensors.
        RuntimeError: (in backward) an input was changed in place meanwhile, or the pass computes gradients of chosen inputs
            and `use_reentrant` is True.
        ValueError: options that do not go together.
    """
    options = {
        "use_reentrant": use_reentrant,
        "preserve_rng_state": preserve_rng_state,
        "context_fn": context_fn,
        "determinism_check": determinism_check,
        "debug": debug,
        "early_stop": early_stop,
    }
    if function is None:
        return lambda f: functools.wraps(f)(lambda *a, **k: checkpoint(f, *a, **options, **k))
    if use_reentrant is None:
        warnings.warn(_PASS_IT.format("torch.utils.checkpoint"), stacklevel=2)
        use_reentrant = True
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    debug = debug if _debug is None else _debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    forward, again = context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    logs = _Logs() if debug else None
    if logs is not None:
        forward, recompute = logs.record("first"), functools.partial(logs.record, "again")
    else:
        recompute = functools.partial(_itself, again)
    stop = early_stop if _early_stop is None else _early_stop
    part = _Part(function, args, kwargs, recompute, preserve_rng_state, determinism_check == "default", stop, logs)
    with saved_tensors_hooks(part.pack, part.unpack), packing.by(part.pack, part.unpack), forward:
        result = function(*args, **kwargs)
    part.complete = True
    return result


def _itself(value):
    return value


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs modules in sequence, in `segments` parts of which all but the last are checkpointed.

    Args:
        functions (Sequential or list of callables).
        segments (int): number of parts.
        input: the input of the first.
        preserve_rng_state (bool): as in `checkpoint`.
    """
    if use_reentrant is None:
        warnings.warn(_PASS_IT.format("torch.utils.checkpoint.checkpoint_sequential"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions)
    size = len(functions) // segments

    def run(some, value):
        return functools.reduce(lambda v, f: f(v), some, value)

    for start in range(0, size * (segments - 1), size):
        part = functools.partial(run, functions[start : start + size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(functions[size * (segments - 1) :], input)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
