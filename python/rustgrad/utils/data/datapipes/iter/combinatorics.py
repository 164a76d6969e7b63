"""Pipes that reorder, as classes to ask for: nothing is one."""

from typing import Any, NoReturn

from .. import IterDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(IterDataPipe):
    """For `isinstance`; a `DataLoader` shuffles with `shuffle=True`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "ShufflerIterDataPipe: there are no pipes here; expected a data set. Hint: DataLoader(shuffle=True)."
        )


def __dir__() -> list[str]:
    return __all__
