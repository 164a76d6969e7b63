"""Operators of programs by PyTorch's private paths; `rustgrad.library` has them."""

from ..library import triton_op, wrap_triton
from . import custom_ops, infer_schema

__all__ = ["custom_ops", "infer_schema", "triton_op", "wrap_triton"]
