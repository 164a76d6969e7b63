"""Names of PyTorch's sparse kernels for GPUs, which libraries import; there are none here, and tensors of blocks neither."""

from __future__ import annotations

from ..distributed._refusals import refusing_function

__all__: list[str] = []

_NAMES = """
    broadcast_batch_dims bsr_dense_addmm bsr_dense_mm bsr_scatter_mm launch_kernel prepare_inputs ptr_stride_extractor sampled_addmm
    scatter_mm tile_to_blocksize
"""
_HINT = "multiply by a sparse tensor in the layout CSR, or by a dense one."
globals().update({name: refusing_function(__name__, name, _HINT) for name in _NAMES.split()})
