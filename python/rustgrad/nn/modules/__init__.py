"""The modules, one file per family. `rustgrad.nn` exports all of them."""

from typing import get_type_hints

from ..._own import own_module
from . import (  # noqa: F401
    activation,
    adaptive,
    attention,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    linear_cross_entropy_options,
    loss,
    normalization,
    padding,
    parameter_container,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
    utils,
)
from .activation import *  # noqa: F403
from .adaptive import *  # noqa: F403
from .batchnorm import *  # noqa: F403
from .channelshuffle import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .fold import *  # noqa: F403
from .instancenorm import *  # noqa: F403
from .linear import *  # noqa: F403
from .linear_cross_entropy_options import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pixelshuffle import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .sparse import *  # noqa: F403
from .transformer import *  # noqa: F403
from .upsampling import *  # noqa: F403

__all__ = ["Module"]
for _family in (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    linear,
    linear_cross_entropy_options,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
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


def _evaluate_annotations():
    """Annotations of classes become types: a layer's are also evaluated where its names are not known."""
    ours = {
        base for cls in map(globals().get, __all__) for base in cls.__mro__ if own_module(base).startswith(__name__)
    }
    for cls in ours:
        if own := cls.__annotations__:
            types = get_type_hints(cls)
            cls.__annotations__ = {name: types[name] for name in own}


_describe_forwards()
_evaluate_annotations()


def __dir__() -> list[str]:
    return __all__
