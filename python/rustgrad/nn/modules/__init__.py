"""The modules, one file per family. `rustgrad.nn` exports all of them."""

from . import activation, container, dropout, flatten, linear, loss, normalization, parameter_container, sparse
from .activation import *  # noqa: F403
from .container import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module
from .normalization import *  # noqa: F403
from .parameter_container import *  # noqa: F403
from .sparse import *  # noqa: F403

__all__ = ["Module"]
for _family in (activation, container, dropout, flatten, linear, loss, normalization, parameter_container, sparse):
    __all__ += _family.__all__
del _family
