"""Which devices PyTorch's optimizers would update many tensors at once on; here every update is fused."""

from .._base import Tensor

__all__ = []
_foreach_supported_types = [Tensor]


def _get_foreach_kernels_supported_devices():
    """The types of devices beside the CPU on which `foreach=True` and a fused update mean the same."""
    return ["gpu"]


def _get_fused_kernels_supported_devices():
    """The types of devices that have fused updates."""
    return ["cpu", "gpu"]


def _device_has_foreach_support(device):
    return device.type in ("cpu", *_get_foreach_kernels_supported_devices())


def _has_foreach_support(tensors, device):
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _foreach_supported_types for t in tensors
    )


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """Columns of lists by device and dtype of the tensor in the first list; there every item must be a tensor.

    Returns:
        {(device, dtype): (lists, positions)}; the positions are empty unless `with_indices`.
    """
    groups = {}
    for i, row in enumerate(zip(*tensorlistlist, strict=True)):
        key = (row[0].device, row[0].dtype)
        lists, positions = groups.setdefault(key, ([[] for _ in row], []))
        for column, value in zip(lists, row, strict=True):
            column.append(value)
        if with_indices:
            positions.append(i)
    return groups
