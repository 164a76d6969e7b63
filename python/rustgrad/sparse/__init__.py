"""`rustgrad.sparse`: names that programs import; there are no sparse layouts, so each function refuses."""

from __future__ import annotations

from typing import Any, NoReturn

from .._absent import getattr_of

__all__ = ["addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]


def _refuse(name) -> NoReturn:
    raise NotImplementedError(
        f"sparse.{name}: there are no sparse tensors here; expected dense ones. Hint: multiply by a dense matrix, or sum edges "
        "with index_add."
    )


def _refusing(name):
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        _refuse(name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "NotImplementedError: there are no sparse tensors."
    return function


addmm, log_softmax, mm = map(_refusing, ("addmm", "log_softmax", "mm"))
sampled_addmm, softmax, spdiags, sum = map(_refusing, ("sampled_addmm", "softmax", "spdiags", "sum"))


_CONSTRUCTORS = (
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
)
for _name in _CONSTRUCTORS:
    globals()[_name] = _refusing(_name)


class check_sparse_tensor_invariants:
    """A setting without effect: there is nothing to check. Also a block."""

    @staticmethod
    def is_enabled() -> bool:
        """False."""
        return False

    @staticmethod
    def enable() -> None:
        """No effect."""

    @staticmethod
    def disable() -> None:
        """No effect."""

    def __init__(self, enable: bool = True) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
