"""Names that libraries import: averages of models in place of gradients, which are not here."""

from ..._refusals import refusing_class

__all__ = ["ModelAverager", "PeriodicModelAverager"]

_HINT = "use DistributedDataParallel, which averages gradients."
ModelAverager = refusing_class(__name__, "ModelAverager", _HINT)
PeriodicModelAverager = refusing_class(__name__, "PeriodicModelAverager", _HINT)
