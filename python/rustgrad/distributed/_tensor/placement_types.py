"""The older name of `distributed.tensor.placement_types`."""

from ..tensor._dtensor_spec import DTensorSpec, TensorMeta
from ..tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard", "TensorMeta"]
