"""Arithmetic as modules, so that its results can be observed and quantised."""

from __future__ import annotations

from typing import Any, NoReturn

import rustgrad as torch

from .....nn import functional as F
from .....nn.modules.linear import Identity
from .....nn.modules.module import Module

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]


def _not_called(self: Any, x: Any) -> NoReturn:
    """RuntimeError: the operations are methods."""
    raise RuntimeError(
        f"{type(self).__name__} is not intended to use the 'forward'. Please use the underlying operation"
    )


class FXFloatFunctional(Module):
    """Sums, products and joins of float tensors, which graph mode observes where they stand."""

    forward = _not_called

    def _seen(self, r):
        return r

    def add(self, x: Any, y: Any) -> Any:
        """`x + y`."""
        return self._seen(torch.add(x, y))

    def add_scalar(self, x: Any, y: float) -> Any:
        """`x + y` with a number, which is not observed."""
        return torch.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """`x * y`."""
        return self._seen(torch.mul(x, y))

    def mul_scalar(self, x: Any, y: float) -> Any:
        """`x * y` with a number, which is not observed."""
        return torch.mul(x, y)

    def cat(self, x: list[torch.Tensor], dim: int = 0) -> Any:
        """Tensors joined along a dimension."""
        return self._seen(torch.cat(x, dim=dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """`relu(x + y)`."""
        return self._seen(F.relu(torch.add(x, y)))

    def matmul(self, x: Any, y: Any) -> Any:
        """`x @ y`."""
        return self._seen(torch.matmul(x, y))


class FloatFunctional(FXFloatFunctional):
    """Sums, products and joins of float tensors, whose results are observed: `QFunctional` takes its place in `convert`."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Any = Identity()

    def _seen(self, r):
        return self.activation_post_process(r)


class QFunctional(Module):
    """Sums, products and joins of quantised tensors.

    Attributes:
        scale, zero_point: of the results.
    """

    forward = _not_called

    def __init__(self) -> None:
        super().__init__()
        self.scale: Any = 1.0
        self.zero_point: Any = 0
        self.activation_post_process: Any = Identity()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = torch.tensor(self.scale)
        destination[prefix + "zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def _get_name(self):
        return "QFunctional"

    def extra_repr(self) -> str:
        """The scale and the zero point."""
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def _seen(self, r):
        return self.activation_post_process(r)

    def add(self, x: Any, y: Any) -> Any:
        """`x + y`."""
        return self._seen(torch.ops.quantized.add(x, y, scale=self.scale, zero_point=self.zero_point))

    def add_scalar(self, x: Any, y: float) -> Any:
        """`x + y` with a number."""
        return torch.ops.quantized.add_scalar(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """`x * y`."""
        return self._seen(torch.ops.quantized.mul(x, y, scale=self.scale, zero_point=self.zero_point))

    def mul_scalar(self, x: Any, y: float) -> Any:
        """`x * y` with a number."""
        return torch.ops.quantized.mul_scalar(x, y)

    def cat(self, x: list[torch.Tensor], dim: int = 0) -> Any:
        """Tensors joined along a dimension."""
        return self._seen(torch.ops.quantized.cat(x, scale=self.scale, zero_point=self.zero_point, dim=dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """`relu(x + y)`."""
        return self._seen(torch.ops.quantized.add_relu(x, y, scale=self.scale, zero_point=self.zero_point))

    def matmul(self, x: Any, y: Any) -> Any:
        """`x @ y`."""
        return self._seen(torch.ops.quantized.matmul(x, y, scale=self.scale, zero_point=self.zero_point))

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised module of one that was observed. AssertionError: it is no `FloatFunctional`."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        made = cls()
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made


def __dir__() -> list[str]:
    return __all__
