"""The older name of `distributed.fsdp`."""

from ..fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

__all__ = ["FSDPModule", "MixedPrecisionPolicy", "fully_shard"]
