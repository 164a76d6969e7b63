"""The part of `Module` that traverses the tree: children, parameters, buffers, and functions applied to all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ... import __future__
from ..._base import device as _device
from ..._C import Tensor, _to_arguments, dtype
from ..._typing import DeviceLike, Self
from ...autograd.grad_mode import no_grad
from ...utils import swap_tensors
from ..parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...nn.modules.module import Module

_COMPLEX_WARNING = (
    "Complex modules are a new feature under active development whose design may change, and some modules might "
    "not work as expected when using complex tensors as parameters or buffers."
)


class Traversal:
    """Mixed into `Module`."""

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        # Members may be made for this call: one that is gone would leave its identity to the next.
        seen: dict[int, Any] = {}
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            dot = module_prefix + "." if module_prefix else ""
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen[id(value)] = value
                yield dot + name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterates over the parameters, those of the submodules included if `recurse`, each once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterates over (dotted name, parameter)."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterates over the buffers, those of the submodules included if `recurse`, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterates over (dotted name, buffer)."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Iterates over the immediate submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterates over (name, immediate submodule)."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterates over the module itself and all modules below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterates over (dotted name, module), the module itself first, under the name `prefix`."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """The submodule of the dotted name `target`; the module itself for "".

        Raises:
            AttributeError: a part of the name does not exist or is not a module.
        """
        module = self
        for item in target.split(".") if target else ():
            if not hasattr(module, item):
                raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Traversal):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts `module` at the dotted name `target`; with `strict`, only if a submodule exists there already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Traversal):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Traversal):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of the dotted name `target`; AttributeError if it is not one."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        param = getattr(module, name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of the dotted name `target`; AttributeError if it is not one."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls `fn` on every submodule, then on the module itself; returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replaces the data of every parameter, gradient and buffer by `fn` of it; parameters keep their identity.

        `rustgrad.__future__` has two alternatives: new parameters, and whole parameters that are swapped.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for name, param in self._parameters.items():
                if param is not None:
                    self._parameters[name] = self._apply_to(name, param, fn)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def _apply_to(self, name, param, fn):
        grad, result = param.grad, param
        if __future__.get_overwrite_module_params_on_conversion():
            result = Parameter(fn(param), param.requires_grad)
            if grad is not None:
                result.grad = fn(grad).requires_grad_(grad.requires_grad)
            return result
        # The gradient must follow dtype and device at the same moment as the data.
        param.grad = None
        try:
            self._put(name, param, fn(param))
            if grad is not None:
                self._put(f"{name}.grad", grad, fn(grad))
        finally:
            if grad is not None and grad.dtype == param.dtype and grad.device == param.device:
                param.grad = grad
        return result

    def _put(self, name, tensor, value):
        """Replaces the tensor's data by that of `value`, or swaps the whole tensor."""
        if not __future__.get_swap_module_params_on_conversion():
            tensor.data = value
            return
        try:
            if isinstance(tensor, Parameter):
                value = Parameter(value, tensor.requires_grad)
            swap_tensors(tensor, value.requires_grad_(tensor.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves and casts parameters and buffers in place: `to(device)`, `to(dtype)`, both, or `to(tensor)`.

        Only floating point and complex tensors change their dtype.

        Raises:
            TypeError: `dtype` is neither floating point nor complex.
            RuntimeError: `copy=True`: the module itself is changed.
        """
        to_device, to_dtype, non_blocking, copy, memory_format = _to_arguments(args, kwargs)
        if copy:
            raise RuntimeError(".to() does not accept copy argument")
        if to_dtype is not None:
            if not (to_dtype.is_floating_point or to_dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={to_dtype}"
                )
            if to_dtype.is_complex:
                warnings.warn(_COMPLEX_WARNING, stacklevel=2)

        def convert(t):
            if t.is_meta and to_device is not None and _device(to_device).type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
            cast = to_dtype if t.is_floating_point() or t.is_complex() else None
            # Channels-last formats do not apply to other ranks.
            layout = memory_format if memory_format is not None and t.dim() in (4, 5) else None
            return t.to(
                t.device if to_device is None else to_device, cast or t.dtype, non_blocking, memory_format=layout
            )

        return self._apply(convert)

    def cpu(self) -> Self:
        """Moves parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: DeviceLike | None = None) -> Self:
        """Moves parameters and buffers as `Tensor.cuda` does: only under `python -m rustgrad`."""
        return self._apply(lambda t: t.cuda(device))

    def gpu(self, device: DeviceLike | None = None) -> Self:
        """Moves parameters and buffers to the GPU, `gpu:0` by default."""
        name = "gpu" if device is None else f"gpu:{device}" if isinstance(device, int) else device
        return self._apply(lambda t: t.to(name))

    def type(self, dst_type: dtype | str) -> Self:
        """Casts all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Casts floating point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Casts floating point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Casts floating point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Casts floating point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device: DeviceLike | None, recurse: bool = True) -> Self:
        """Moves parameters and buffers to `device` without copying their values."""
        from ..._base import empty_like

        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Moves parameters and buffers to shared memory where tensors support it."""
        return self._apply(lambda t: t.share_memory_())

    def _replicate_for_data_parallel(self) -> Self:
        # PyTorch's hook for modules that hold more than parameters; the replica gets those of its device later.
        replica = self.__new__(type(self))
        own = {"_parameters": {}, "_buffers": self._buffers.copy(), "_modules": self._modules.copy()}
        replica.__dict__ = {**self.__dict__, **own, "_is_replica": True}
        return replica

    def train(self, mode: bool = True) -> Self:
        """Sets the training mode (`self.training`) of this module and all below it; returns the module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode: the same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets `requires_grad` of every parameter; returns the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or fills them with zeros if not `set_to_none`."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
            elif grad.grad_fn is not None:
                grad.detach_().zero_()
            else:
                grad.requires_grad_(False).zero_()
