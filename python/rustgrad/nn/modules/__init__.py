"""The modules, one file per family. `rustgrad.nn` exports all of them."""

from . import (
    activation,
    batchnorm,
    container,
    conv,
    dropout,
    flatten,
    instancenorm,
    linear,
    loss,
    normalization,
    parameter_container,
    pooling,
    sparse,
)
from .activation import *  # noqa: F403
from .batchnorm import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .instancenorm import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module
from .normalization import *  # noqa: F403
from .parameter_container import *  # noqa: F403
from .pooling import *  # noqa: F403
from .sparse import *  # noqa: F403

__all__ = ["Module"]
for _family in (
    activation,
    batchnorm,
    container,
    conv,
    dropout,
    flatten,
    instancenorm,
    linear,
    loss,
    normalization,
    parameter_container,
    pooling,
    sparse,
):
    __all__ += _family.__all__
del _family


def _describe_forwards():
    """`help(nn.Linear.forward)` says what the module does, by the first and the `Shape` paragraph of its docstring."""
    for cls in map(globals().get, __all__):
        forward = vars(cls).get("forward")
        if forward is not None and forward.__doc__ is None and cls.__doc__:
            parts = cls.__doc__.split("\n\n")
            forward.__doc__ = "\n\n".join([parts[0], *(p for p in parts[1:] if p.lstrip().startswith("Shape:"))])


_describe_forwards()


def __dir__() -> list[str]:
    return __all__
