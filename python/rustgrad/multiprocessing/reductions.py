"""How tensors and storages are pickled for another process: by their shared memory, not by their bytes.

Only pickles of `multiprocessing` (queues, pipes, arguments of spawned processes) do so; `pickle.dumps` and `save` write
the bytes.
"""

from __future__ import annotations

import os
from multiprocessing import reduction
from typing import Any

from .. import _C
from .._C import Tensor
from ..storage import TypedStorage, UntypedStorage, storage_of
from . import strategy

__all__ = ["init_reductions", "reduce_storage", "reduce_tensor"]


def reduce_tensor(tensor: Tensor) -> Any:
    """A tensor as a view of its storage, which moves to shared memory.

    Raises:
        RuntimeError: the tensor has a history, which cannot cross to another process.
    """
    check_leaf(tensor)
    return tensor.__reduce_ex__(2)


def check_leaf(tensor: Tensor) -> None:
    """RuntimeError for a tensor with a history."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
            "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
            "(e.g., putting it on the queue)."
        )


def reduce_storage(storage: UntypedStorage) -> Any:
    """A storage by its shared memory; one that is not on the CPU by its bytes."""
    if not storage._tensor.is_cpu or os.name == "nt":
        return storage.__reduce__()
    place = storage._share_place()
    descriptor, size, start, file = place
    stop = start + storage.nbytes()
    if file is not None:
        file.hand_over()
        return _from_file, (file.name, size, start, stop)
    return _from_descriptor, (reduction.DupFd(descriptor), size, start, stop)


def _part(whole, start, stop):
    return storage_of(whole if (start, stop) == (0, whole.numel()) else _C._storage_slice(whole, start, stop))


def _from_file(name, size, start, stop):
    return _part(strategy.attach(name, size), start, stop)


def _from_descriptor(sent, size, start, stop):
    descriptor = sent.detach()
    try:
        return _part(_C._shared_open(descriptor, size, True), start, stop)
    finally:
        os.close(descriptor)


def _reduce_typed(storage):
    return storage.__reduce__()


def init_reductions() -> None:
    """Registers the functions of this module with the pickler of `multiprocessing`."""
    from ..nn.parameter import Parameter

    reduction.ForkingPickler.register(UntypedStorage, reduce_storage)
    reduction.ForkingPickler.register(TypedStorage, _reduce_typed)
    for kind in (Tensor, Parameter):
        reduction.ForkingPickler.register(kind, reduce_tensor)
