"""The names under which ops are recorded, and which of them need care."""

from __future__ import annotations

from typing import Any

from ..overrides import resolve_name

__all__ = ["ASKS", "FORMS", "OF_DATA", "RANDOM", "READS", "SIZES", "WRITERS", "op_key"]

# Answers about tensors that do not depend on their elements.
ASKS = set(
    """
    dim ndimension ndim.__get__ dtype.__get__ device.__get__ layout.__get__ is_floating_point is_complex is_signed is_contiguous
    stride storage_offset requires_grad.__get__ is_leaf.__get__ grad.__get__ grad_fn.__get__ _base.__get__ _version.__get__
    is_cuda.__get__ is_cpu.__get__ is_gpu.__get__ is_sparse.__get__ is_quantized.__get__ is_meta.__get__ is_nested.__get__
    is_mkldnn.__get__ is_mps.__get__ is_xpu.__get__ itemsize.__get__ element_size get_device
    names.__get__ retain_grad register_hook backward requires_grad.__set__ grad.__set__ is_shared is_pinned is_inference
    is_same_size result_type can_cast is_set_to __hash__ __repr__ __str__ __format__ __dir__ untyped_storage
    __reduce_ex__ storage data_ptr output_nr.__get__ volatile.__get__ is_tensor is_conj is_neg is_storage
    broadcast_shapes __deepcopy__
    """.split()
)
SIZES = {"shape.__get__", "size", "numel", "nelement", "__len__"}
READS = set(
    """
    item tolist numpy __array__ __bool__ __int__ __float__ __index__ __complex__ __contains__ is_nonzero equal allclose
    __cuda_array_interface__.__get__ __dlpack__
    """.split()
)
RANDOM = set(
    """
    rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson uniform_ normal_
    bernoulli_ exponential_ random_ cauchy_ log_normal_ geometric_ rrelu gumbel_softmax
    """.split()
)
_SPACES = ("torch.", "Tensor.", "nn.functional.", "functional.", "_C._nn.")


# Functions whose names are those of others with other arguments.
_OTHERS = {
    "torch.nn.functional.unfold": "im2col",
    "torch.nn.functional.fold": "col2im",
    "torch.embedding": "torch_embedding",
    "torch.batch_norm": "torch_batch_norm",
    "torch.instance_norm": "torch_instance_norm",
    "torch.Tensor.where": "where_self",
}
# Ops that give a tensor another form in place.
FORMS = {"squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims", "as_strided", "detach"}
# Functions that may write to an argument without saying so in their names.
WRITERS = {"batch_norm", "instance_norm", "native_batch_norm"}
# Functions that make tensors of data.
OF_DATA = {"tensor", "as_tensor", "asarray", "new_tensor", "scalar_tensor"}


def op_key(function: Any) -> str:
    """The name of an op without the namespaces that all ops share: "add", "linalg.norm", "shape.__get__"."""
    name = resolve_name(function)
    if name is None:
        # An op of `torch.ops`, with or without the name of its overload.
        name = getattr(function, "__name__", str(function)).split(".")[0]
    if name in _OTHERS:
        return _OTHERS[name]
    for space in _SPACES:
        name = name.removeprefix(space)
    return str(name)
