"""How samples become a batch, under the module name of PyTorch."""

import re

from .._collate import collate as collate
from .._collate import collate_float_fn as collate_float_fn
from .._collate import collate_int_fn as collate_int_fn
from .._collate import collate_numpy_array_fn as collate_numpy_array_fn
from .._collate import collate_numpy_scalar_fn as collate_numpy_scalar_fn
from .._collate import collate_str_fn as collate_str_fn
from .._collate import collate_tensor_fn as collate_tensor_fn
from .._collate import default_collate as default_collate
from .._collate import default_collate_fn_map as default_collate_fn_map
from .._collate import default_convert as default_convert

# The kinds of NumPy's dtypes, as in `array.dtype.str`, of which no tensor is made.
np_str_obj_array_pattern = re.compile(r"[SaUO]")

__all__ = [
    "collate",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
    "default_collate",
    "default_collate_fn_map",
    "default_convert",
    "np_str_obj_array_pattern",
]
