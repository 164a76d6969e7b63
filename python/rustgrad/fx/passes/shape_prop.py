"""`ShapeProp`: runs a graph and notes the shape and dtype of each value in the node's `meta`."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._C import Tensor
from ..._formats import channels_last, channels_last_3d, contiguous_format
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What a node's `meta["tensor_meta"]` says about its value."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


_FORMATS = (contiguous_format, channels_last, channels_last_3d)


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    lies_in = next((f for f in _FORMATS if include_contiguity and result.is_contiguous(memory_format=f)), None)
    quantiser = {}
    if result.is_quantized:
        quantiser["qscheme"] = scheme = result.qscheme()
        if str(scheme).endswith("per_tensor_affine"):
            quantiser |= {"scale": result.q_scale(), "zero_point": result.q_zero_point()}
        else:
            scales, zeros = result.q_per_channel_scales(), result.q_per_channel_zero_points()
            quantiser |= {"scale": scales.tolist(), "zero_point": zeros.tolist(), "axis": result.q_per_channel_axis()}
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), lies_in, result.is_quantized, quantiser
    )


class ShapeProp(Interpreter):
    """An interpreter that notes `tensor_meta` and `type` of every node.

    Args:
        gm (GraphModule): the graph.
        fake_mode: None: the nodes run on the tensors that are given, which may be on the meta device.

    Raises:
        NotImplementedError: another `fake_mode`.
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        if fake_mode is not None:
            raise NotImplementedError(
                "ShapeProp: fake_mode is not here; expected None. Hint: give tensors of the meta device, or trace with "
                "make_fx(f, tracing_mode='fake')"
            )
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """The value of a node, after noting what it is."""
        result = super().run_node(n)
        found: list[Tensor] = []

        def describe(value):
            if not isinstance(value, Tensor):
                return value
            found.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph with these arguments; returns its result."""
        return super().run(*args)
