"""How samples become a batch, under the module name of PyTorch."""

import re

from .. import _collate
from .._collate import *  # noqa: F403

# The kinds of NumPy's dtypes, as in `array.dtype.str`, of which no tensor is made.
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
np_str_obj_array_pattern = re.compile(r"[SaUO]")

__all__ = ["default_collate_err_msg_format", "np_str_obj_array_pattern"]
__all__ += _collate.__all__
