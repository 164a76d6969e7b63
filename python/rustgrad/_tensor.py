"""The methods of `Tensor` written in Python: metadata, memory, autograd; and their installation.

Ops of the table are set on the class by the extension module. Conversions live in
`_conversions`, Python's protocols (printing, NumPy, pickle) in `_protocols`, what asks for other layouts in
`_sparse_methods`.
"""

import types
import warnings
from collections import OrderedDict

from . import _C, _conversions, _formats, _functions, _protocols, _sparse_methods, _spectral, storage
from ._absent import getattr_of
from ._C import Tensor, ops
from ._size import row_major


def _grow(storage, width, offset, size, stride):
    """Makes a storage reach the last element of a layout. Layouts that are none are left to whoever takes them."""
    sizes, strides = tuple(size), stride
    if strides is None:
        strides = row_major(sizes)
    if len(strides) != len(sizes) or 0 in sizes or min((offset, *sizes, *strides)) < 0:
        return
    last = offset + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    if storage.nbytes() < (last + 1) * width < 1 << 63:
        storage.resize_((last + 1) * width)


class _Methods:
    """The body of `Tensor`: each name here becomes an attribute of the class."""

    # --- shape and memory ------------------------------------------------------------------------------------
    def is_set_to(self, tensor):
        """Whether both tensors have the same memory, shape, strides and dtype."""
        if tensor.layout is not self.layout:
            return False
        return _C._storage_info(self)[:4] == _C._storage_info(tensor)[:4] and self.shape == tensor.shape

    def resize_(self, *sizes, memory_format=None):
        """Changes the shape in place; the storage grows if necessary and keeps its elements.

        Raises:
            RuntimeError: the tensor requires grad, or the storage cannot grow: another library shares its memory.
        """
        _C._resize(self, _sizes(sizes), memory_format)
        return self

    def resize_as_(self, the_template, *, memory_format=None):
        """`resize_` to the shape of another tensor, and to its memory format if that is to be preserved."""
        if memory_format is not None and memory_format._name == "preserve_format":
            memory_format = _formats.format_of(the_template)
        return self.resize_(the_template.shape, memory_format=memory_format)

    def resize(self, *sizes):
        """The deprecated out-of-place form: `reshape`, with the same number of elements."""
        warnings.warn("non-inplace resize is deprecated", stacklevel=2)
        return self.reshape(_sizes(sizes))

    def resize_as(self, tensor):
        """The deprecated out-of-place form: `reshape_as`."""
        warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
        return self.reshape(tensor.shape)

    def square_(self):
        """Each element squared, in place: `pow_(2)`, also in the graph."""
        return self.pow_(2)

    def lu(self, pivot=True, get_infos=False):
        """L and U in one matrix and the pivots: `torch.lu`."""
        return _functions.lu(self, pivot, get_infos)

    def stft(
        self,
        n_fft,
        hop_length=None,
        win_length=None,
        window=None,
        center=True,
        pad_mode="reflect",
        normalized=False,
        onesided=None,
        return_complex=None,
        align_to_window=None,
    ):
        """The short-time Fourier transform: `torch.stft`."""
        return _spectral.stft(
            self,
            n_fft,
            hop_length,
            win_length,
            window,
            center,
            pad_mode,
            normalized,
            onesided,
            return_complex,
            align_to_window,
        )

    def istft(
        self,
        n_fft,
        hop_length=None,
        win_length=None,
        window=None,
        center=True,
        normalized=False,
        onesided=None,
        length=None,
        return_complex=False,
    ):
        """The inverse of the short-time Fourier transform: `torch.istft`."""
        return _spectral.istft(
            self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex
        )

    def dim_order(self, *, ambiguity_check=False):
        """The dimensions from the slowest in memory to the fastest.

        Args:
            ambiguity_check (bool or list of memory_format): whether the order must be unique, or formats of which
                the tensor must have exactly one.

        Raises:
            RuntimeError: the order is ambiguous.
        """
        if ambiguity_check is not False and _formats.has_many_orders(self, ambiguity_check):
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
        return tuple(sorted(range(self.ndim), key=lambda d: -self.stride(d)))

    def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=None):
        """An uninitialised tensor with these sizes and strides; by default of this tensor's dtype and device."""
        dtype, device = dtype or self.dtype, device or self.device
        return ops["empty_strided"](size, stride, dtype=dtype, device=device).requires_grad_(bool(requires_grad))

    def set_(self, source=None, storage_offset=0, size=None, stride=None):
        """Shares the memory of another tensor or storage: all of it, or with `size` and `stride` from an offset on.

        A storage grows where it is too small, with new elements of any value. RuntimeError where it cannot.
        """
        if source is None:
            source = ops["empty"](0, dtype=self.dtype, device=self.device)
        elif isinstance(source, Tensor) and (source.layout is not _formats.strided or source.is_nested):
            raise NotImplementedError(f"set_: expected a source that is dense, got one of the layout {source.layout}")
        elif not isinstance(source, Tensor):
            stored = getattr(source, "dtype", self.dtype)
            if stored != self.dtype:
                raise RuntimeError(
                    f"Expected a Storage of type {self.dtype._scalar_type_name} or an UntypedStorage, but got type "
                    f"{stored._scalar_type_name} for argument 1 'storage'"
                )
            source = source.untyped()._as(self.dtype)
        written = self.is_leaf and self.requires_grad and _C.is_grad_enabled()
        if size is not None and not written and source.dtype == self.dtype:
            _grow(source.untyped_storage(), self.dtype.itemsize, storage_offset, size, stride)
        _C._set_(self, source, storage_offset, size, stride)
        return self

    # --- autograd --------------------------------------------------------------------------------------------
    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Adds the gradient of this tensor with respect to each leaf to the leaf's `.grad`.

        Args:
            gradient (Tensor, optional): the gradient with respect to this tensor, of its shape; 1 for a scalar.
            retain_graph (bool, optional): keep the graph for another pass; by default as `create_graph`.
            create_graph (bool): record the computation of the gradients, for higher-order gradients.
            inputs (sequence of Tensor, optional): accumulate only into these.
        """
        if gradient is None and inputs is None and self.requires_grad and self.numel() == 1 and not self.is_complex():
            keep = create_graph if retain_graph is None else retain_graph
            one = ops["ones_like"](self) if self.dtype.is_floating_point else None
            _C._run_backward((self,), (one,), keep, create_graph, (), True, True)
            return
        from .autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def requires_grad_(self, requires_grad=True):
        """Sets whether gradients are computed for a leaf."""
        _C._requires_grad_(self, requires_grad)
        return self

    def retain_grad(self):
        """Keeps the gradient of a non-leaf in `.grad`."""
        _C._retain_grad(self)

    def register_hook(self, hook):
        """Calls `hook(grad)` whenever the gradient is computed; it may return another. Returns a removable handle.

        Raises:
            RuntimeError: the tensor does not require grad.
        """
        _check_hookable(self)
        return self._register(hook, False)

    def register_post_accumulate_grad_hook(self, hook):
        """Calls `hook(tensor)` after the gradient of a leaf was accumulated; the hook returns None.

        Raises:
            RuntimeError: the tensor does not require grad, or is not a leaf.
        """
        _check_hookable(self)
        if self.grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return self._register(hook, True)

    def _register(self, hook, accumulated):
        from .utils.hooks import RemovableHandle

        hooks = _C._get_hooks(self, accumulated)
        if hooks is None:
            hooks = OrderedDict()
            _C._set_hooks(self, hooks, accumulated)
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def detach_(self):
        """Detaches the tensor from its history, in place."""
        _C._detach_(self)
        return self

    def _is_view(self):
        """Whether the tensor is a view of another one."""
        return self._base is not None

    def is_inference(self):
        """Whether the tensor was created in inference mode."""
        return _C._is_inference(self)

    # --- composed answers ------------------------------------------------------------------------------------
    def equal(self, other):
        """Whether both tensors have the same size and elements."""
        if self.shape != other.shape:
            return False
        return bool((self == other).all().item())

    def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        """Whether all elements are close: `|self - other| <= atol + rtol * |other|`."""
        return bool(ops["isclose"](self, other, rtol, atol, equal_nan).all().item())

    def module_load(self, other, assign=False):
        """The tensor that `load_state_dict` swaps in for this parameter: its copy of `other`, or `other` itself."""
        return other.detach() if assign else self.copy_(other).detach()

    def as_subclass(self, cls):
        """The same memory and history as an instance of `cls`."""
        return _C._as_subclass(self, cls)

    def is_same_size(self, other):
        """Whether both have the same size."""
        return self.shape == other.shape

    def is_nonzero(self):
        """Whether the element of a one-element tensor is not zero."""
        return bool(self)

    @property
    def T(self):
        """The dimensions in reverse order."""
        if self.ndim == 0:
            _C._warn_once("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.", 2)
        elif self.ndim != 2:
            _C._warn_once(_NO_MATRIX, 2)
        return self.permute(*range(self.ndim - 1, -1, -1)) if self.ndim else self.permute(())

    @property
    def mT(self):
        """The transpose of the last two dimensions."""
        if self.ndim == 0:
            return self
        if self.ndim == 1:
            raise RuntimeError(
                f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
            )
        return self.transpose(-2, -1)

    @property
    def H(self):
        """The conjugate transpose of a matrix."""
        if self.ndim not in (0, 2):
            raise RuntimeError(
                f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor. "
                "For batches of matrices, consider using tensor.mH"
            )
        return self.transpose(0, 1).conj() if self.ndim == 2 else self.conj()

    @property
    def mH(self):
        """The conjugate transpose of the last two dimensions."""
        return self.mT.conj()

    @property
    def real(self):
        """The real part, a view; the tensor itself if it is real."""
        return ops["real"](self) if self.dtype.is_complex else self

    @real.setter
    def real(self, value):
        self.real.copy_(value) if isinstance(value, Tensor) else self.real.fill_(value)

    @property
    def imag(self):
        """The imaginary part of a complex tensor, a view."""
        return ops["imag"](self)

    @imag.setter
    def imag(self, value):
        self.imag.copy_(value) if isinstance(value, Tensor) else self.imag.fill_(value)

    @property
    def layout(self):
        """`strided`; a sparse tensor has another."""
        return _formats.strided

    def resolve_conj(self):
        """The tensor itself: conjugates are never lazy."""
        return self

    def resolve_neg(self):
        """The tensor itself: there are no lazy negatives."""
        return self

    def share_memory_(self):
        """Moves the memory under the tensor to shared memory, which other processes that get the tensor see and write.

        Views keep sharing it; NumPy arrays made earlier keep the previous memory. Nothing for memory that is shared.

        Raises:
            RuntimeError: the tensor is on a GPU, or memory cannot be had.
        """
        storage.storage_of(self).share_memory_()
        return self

    def hash_tensor(self, dim=(), *, keepdim=False, mode=0):
        """The exclusive or of the bits of elements: see the function."""
        from ._seldom import hash_tensor

        return hash_tensor(self, dim, keepdim=keepdim, mode=mode)

    def slice_inverse(self, src, dim=0, start=None, end=None, step=1):
        """The tensor that a slice was taken of: see the function."""
        from ._seldom import slice_inverse

        return slice_inverse(self, src, dim, start, end, step)

    def is_shared(self):
        """Whether the memory is shared memory: see `share_memory_`."""
        return self.is_cpu and storage.storage_of(self).is_shared()

    @property
    def _backward_hooks(self):
        """The hooks on the gradient by the ids of their handles; None before the first one."""
        return _C._get_hooks(self, False)

    @_backward_hooks.setter
    def _backward_hooks(self, hooks):
        _C._set_hooks(self, hooks, False)

    @_backward_hooks.deleter
    def _backward_hooks(self):
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @property
    def _post_accumulate_grad_hooks(self):
        """The post-accumulate-grad hooks of a leaf; None before the first one."""
        return _C._get_hooks(self, True)

    @_post_accumulate_grad_hooks.setter
    def _post_accumulate_grad_hooks(self, hooks):
        _C._set_hooks(self, hooks, True)


def _check_hookable(tensor):
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")


def _never(name, what):
    answer = property(lambda self: False, doc=f"False: {what}")
    return name, answer


def _false(name):
    def method(self):
        return False

    method.__name__ = name
    method.__doc__ = "False: no tensor here is."
    return method


_ABSENT = dict([
    _never("is_sparse", "the tensor is dense."), _never("is_sparse_csr", "the tensor is dense."),
    _never("is_quantized", "the tensor is no quantised one."),
    _never("is_mkldnn", "tensors are strided."), _never("is_nested", "tensors are rectangular."),
    *(_never(f"is_{kind}", "the GPU is called gpu.") for kind in ("mps", "xpu", "xla", "mtia", "maia", "ipu", "vulkan")),
])  # fmt: skip


_NO_MATRIX = (
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an "
    "error in a future release. Consider `x.mT` to transpose batches of matrices or "
    "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
)


def _sizes(sizes):
    return list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)


# What makes a tensor of a class, or is asked while one is made, printed or looked at.
_NOT_OVERRIDDEN = {"__dir__", "_register", "_repr_html_", "_typed_storage", "as_subclass", "new"}


def _disabled_torch_dispatch_impl(func, types, args=(), kwargs=None):
    """`__torch_dispatch__` of classes that define none: the op on the memory of the tensors."""
    from ._dispatch import _classes

    return _classes.call_disabled(func, args, kwargs)


def _init_subclass(cls, **kwargs):
    super(Tensor, cls).__init_subclass__(**kwargs)
    if cls.__torch_dispatch__ is not _disabled_torch_dispatch_impl:
        from ._dispatch import _classes

        _classes.register(cls)


def _make_wrapper_subclass(cls, *args, **kwargs):
    """A tensor of a class with `__torch_dispatch__` that has a shape, dtype and device, and no memory."""
    from ._dispatch import _classes

    return _classes.make_wrapper(cls, *args, **kwargs)


def _install():
    for body in (_Methods, _conversions.Methods, _protocols.Methods, _sparse_methods.Methods):
        for name, value in vars(body).items():
            if name not in ("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__"):
                if type(value).__name__ == "function":
                    value.__qualname__ = f"Tensor.{value.__name__}"  # in messages about arguments
                setattr(Tensor, name, value)
    for name, value in _ABSENT.items():
        setattr(Tensor, name, value)
    for name in ("is_conj", "is_neg", "is_distributed"):
        setattr(Tensor, name, _false(name))
    storage.install()
    for old, name in (
        ("div", "truediv"),
        ("rdiv", "rtruediv"),
        ("idiv", "itruediv"),
        ("long", "int"),
        ("nonzero", "bool"),
    ):
        setattr(Tensor, f"__{old}__", getattr(Tensor, f"__{name}__"))
    methods = {}
    for name, value in [*vars(Tensor).items()]:
        if isinstance(value, types.FunctionType):
            # Where pickles and tracebacks look for it.
            value.__qualname__, value.__module__ = f"Tensor.{name}", "rustgrad"
            if name not in _NOT_OVERRIDDEN:
                # One for all names of a function.
                setattr(Tensor, name, methods.setdefault(value, _C._overridable_method(value)))
    Tensor._grad = vars(Tensor)["grad"]
    Tensor._make_subclass = staticmethod(_C._make_subclass)
    Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)
    _C._disabled_torch_dispatch_impl = _disabled_torch_dispatch_impl
    Tensor.__torch_dispatch__ = staticmethod(_disabled_torch_dispatch_impl)
    Tensor.__init_subclass__ = classmethod(_init_subclass)
    Tensor.__doc__ = "A multi-dimensional array of one dtype on one device, with its place in the backward graph."
    Tensor.__module__ = "rustgrad"
    Tensor.__name__ = Tensor.__qualname__ = "Tensor"  # in messages too, as in PyTorch
    _C._set_legacy_new(_conversions.legacy_new)


_install()


__getattr__ = getattr_of(__name__)
