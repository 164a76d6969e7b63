"""`rustgrad.cuda.comm`: the functions of `nn.parallel.comm`, where PyTorch has them too."""

from ..nn.parallel.comm import broadcast, broadcast_coalesced, gather, reduce_add, reduce_add_coalesced, scatter

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]
