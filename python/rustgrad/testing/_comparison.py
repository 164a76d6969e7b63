"""`assert_close`: whether tensors, numbers, arrays or containers of them are equal within tolerances."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _base
from .._base import Tensor
from ._pairs import (
    BooleanPair,
    ErrorMeta,
    NonePair,
    NumberPair,
    ObjectPair,
    Pair,
    TensorLikePair,
    UnsupportedInputs,
    default_tolerances,
    get_tolerances,
    item,
)

__all__ = [
    "BooleanPair",
    "ErrorMeta",
    "NonePair",
    "NumberPair",
    "ObjectPair",
    "Pair",
    "TensorLikePair",
    "UnsupportedInputs",
    "assert_allclose",
    "assert_close",
    "default_tolerances",
    "get_tolerances",
    "not_close_error_metas",
    "originate_pairs",
]


def originate_pairs(
    actual: Any,
    expected: Any,
    *,
    pair_types: Any,
    sequence_types: Any = (Sequence,),
    mapping_types: Any = (Mapping,),
    id: tuple[Any, ...] = (),
    **options: Any,
) -> list[Any]:
    """The pairs to compare: one for each item of nested sequences and mappings.

    Raises:
        ErrorMeta: lengths or keys differ (AssertionError), or no pair accepts the two values (TypeError).
    """
    kinds = {"pair_types": pair_types, "sequence_types": sequence_types, "mapping_types": mapping_types}

    def below(keys, get):
        return [p for k in keys for p in originate_pairs(*get(k), id=(*id, k), **kinds, **options)]

    def both(kind):
        return isinstance(actual, kind) and isinstance(expected, kind)

    # The first item of a string is a string again.
    if both(sequence_types) and not isinstance(actual, str) and not isinstance(expected, str):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise ErrorMeta(AssertionError, text, id=id)
        return below(range(len(actual)), lambda i: (actual[i], expected[i]))
    if both(mapping_types):
        return below(_common_keys(actual, expected, id), lambda key: (actual[key], expected[key]))
    if _fields_decide(actual, expected):
        names = [field.name for field in dataclasses.fields(actual) if field.compare]
        return below(names, lambda name: (getattr(actual, name), getattr(expected, name)))
    if dataclasses.is_dataclass(actual) and type(actual) is type(expected) and not isinstance(actual, type):
        pair_types = (*pair_types, ObjectPair)
    return [_pair(actual, expected, pair_types, id, options)]


def _common_keys(actual, expected, id):
    ours, theirs = set(actual), set(expected)
    if ours != theirs:
        raise ErrorMeta(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {_ordered(theirs - ours)}\n"
            f"Additional keys in the actual mapping: {_ordered(ours - theirs)}",
            id=id,
        )
    return _ordered(ours)


def _ordered(keys):
    with contextlib.suppress(TypeError):
        return sorted(keys)
    return list(keys)


def _fields_decide(actual, expected):
    """Whether these are objects of one dataclass whose `==` cannot say if they are equal, as it compares tensors."""
    if not dataclasses.is_dataclass(actual) or type(actual) is not type(expected) or isinstance(actual, type):
        return False
    try:
        return type(actual == expected) is not bool
    except (RuntimeError, ValueError):
        return True


def _pair(actual, expected, pair_types, id, options):
    for pair_type in pair_types:
        try:
            return pair_type(actual, expected, id=id, **options)
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            raise RuntimeError(
                f"Originating a {pair_type.__name__}() at item {item(id)} with\n\n"
                f"{type(actual).__name__}(): {actual}\n\nand\n\n{type(expected).__name__}(): {expected}\n\n"
                "resulted in the unexpected exception above."
            ) from error
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise ErrorMeta(TypeError, text, id=id)


def not_close_error_metas(
    actual: Any,
    expected: Any,
    *,
    pair_types: Any = (ObjectPair,),
    sequence_types: Any = (Sequence,),
    mapping_types: Any = (Mapping,),
    **options: Any,
) -> list[Any]:
    """The differences, as a list of `ErrorMeta`; empty if all are close.

    Raises:
        Exception: the values cannot be compared; with the class and message of the `ErrorMeta`.
    """
    __tracebackhide__ = True
    kinds = {"pair_types": pair_types, "sequence_types": sequence_types, "mapping_types": mapping_types}
    try:
        pairs = originate_pairs(actual, expected, **kinds, **options)
    except ErrorMeta as meta:
        raise meta.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as meta:
            # Without its traceback, which would hold this frame and all tensors in it.
            found.append(meta.with_traceback(None))
        except Exception as error:
            raise RuntimeError(f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above.") from error
    return found


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Asserts that `|actual - expected| <= atol + rtol * |expected|` for all elements; infinities must be equal.

    Args:
        actual, expected: tensors, arrays, numbers, bools or None of related types, or sequences and mappings of them.
        allow_subclasses (bool): whether one type may be a subclass of the other.
        rtol, atol (float): both or none. By default those of the dtype, the looser of two:
            float16 1e-3, bfloat16 1.6e-2, float32 and complex64 1.3e-6, float64 and complex128 1e-7; absolute
            1e-5, for double precision 1e-7; zero for integers and bools.
        equal_nan (bool): whether NaN is equal to NaN.
        check_device, check_dtype, check_layout, check_stride (bool): whether these must be equal too.
        msg (str or callable): the message, or a function of the message.

    Raises:
        AssertionError: values, shapes, lengths or keys differ. The message counts such elements, and says where
            the largest differences are.
        TypeError: the types are not related, or no tensor can be made of a value.
        ValueError: only one of `rtol` and `atol` is given.
    """
    __tracebackhide__ = True
    found = not_close_error_metas(
        actual,
        expected,
        pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
        msg=msg,
    )
    if found:
        raise found[0].to_error(msg)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Deprecated: `assert_close` without checks of dtype and type relation, with looser tolerances."""
    __tracebackhide__ = True
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use "
        "`torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    actual = actual if isinstance(actual, Tensor) else _base.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else _base.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        loose = {_base.float16: (1e-3, 1e-3), _base.float32: (1e-4, 1e-5), _base.float64: (1e-5, 1e-8)}
        rtol, atol = default_tolerances(actual, expected, dtype_precisions=loose)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
