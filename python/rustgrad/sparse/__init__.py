"""`rustgrad.sparse`: functions of sparse tensors, their legacy constructors, and the setting of checks.

A sparse tensor is an object of a subclass of `Tensor`, with tensors of indices and values: `docs/decisions/sparse.md`.
"""

from __future__ import annotations

from .._absent import getattr_of
from ._construct import _sparse_coo_tensor_unsafe as _sparse_coo_tensor_unsafe
from ._construct import sparse_bsc_tensor as sparse_bsc_tensor
from ._construct import sparse_bsr_tensor as sparse_bsr_tensor
from ._construct import sparse_compressed_tensor as sparse_compressed_tensor
from ._construct import sparse_coo_tensor as sparse_coo_tensor
from ._construct import sparse_csc_tensor as sparse_csc_tensor
from ._construct import sparse_csr_tensor as sparse_csr_tensor
from ._functions import addmm as addmm
from ._functions import dsmm as dsmm
from ._functions import hspmm as hspmm
from ._functions import log_softmax as log_softmax
from ._functions import mm as mm
from ._functions import resize_as_sparse_ as resize_as_sparse_
from ._functions import saddmm as saddmm
from ._functions import sampled_addmm as sampled_addmm
from ._functions import smm as smm
from ._functions import softmax as softmax
from ._functions import spdiags as spdiags
from ._functions import spmm as spmm
from ._functions import sspaddmm as sspaddmm
from ._functions import sum as sum
from ._invariants import check_sparse_tensor_invariants as check_sparse_tensor_invariants
from ._legacy import BFloat16Tensor as BFloat16Tensor
from ._legacy import ByteTensor as ByteTensor
from ._legacy import CharTensor as CharTensor
from ._legacy import DoubleTensor as DoubleTensor
from ._legacy import FloatTensor as FloatTensor
from ._legacy import HalfTensor as HalfTensor
from ._legacy import IntTensor as IntTensor
from ._legacy import LongTensor as LongTensor
from ._legacy import ShortTensor as ShortTensor

__all__ = [
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
