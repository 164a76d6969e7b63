"""Functions of CUDA code, which nothing here compiles: they can be made, and a call of one is an error, as without a GPU."""

from __future__ import annotations

import re
from typing import Any, NoReturn

__all__: list[str] = []

# A template, the type that it returns, its name and its parameters; the last function of the code is what is called.
_FUNCTION = re.compile(r"template\s*<[^>]+>\s*(?P<type>\w+)\s+(?P<name>\w+)\s*\([^)]*\)\s*\{.*\}", re.DOTALL)


class _JittedFunction:
    """A function of CUDA code."""

    def __init__(self, code_string: str, return_by_ref: bool, num_outputs: int, **kwargs: Any) -> None:
        if not (return_by_ref or num_outputs == 1):
            raise AssertionError("Return by value only works for single output.")
        found = _FUNCTION.search(code_string[code_string.rfind("template") :])
        if found is None:
            raise Exception(f"Couldn't parse code, please check correctness:\n {code_string}")
        self.code_string, self.return_by_ref, self.num_outputs = code_string, return_by_ref, num_outputs
        self.kernel_name, self.kwargs_dict, self.is_cuda_available = found["name"], kwargs, False

    def __call__(self, *tensors: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError("Jiterator is only supported on CUDA and ROCm GPUs, none are available.")


def _create_jit_fn(code_string: str, **kwargs: Any) -> _JittedFunction:
    """A function of one result, with optional arguments by name."""
    return _JittedFunction(code_string, return_by_ref=False, num_outputs=1, **kwargs)


def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs: Any) -> _JittedFunction:
    """A function of several results."""
    return _JittedFunction(code_string, return_by_ref=True, num_outputs=num_outputs, **kwargs)
