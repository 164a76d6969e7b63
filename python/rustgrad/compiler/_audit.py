"""What a function reads of Python besides its arguments, and whether a call of it can be replaced by what it computed.

A call can be replaced if the function's Python code would do the same again: it depends on nothing but its arguments and
on objects that can be compared, and it changes nothing but tensors. Both are proved from the code objects that the
function can reach: every name that they read is looked up, what is found becomes a guard, and whatever is not known to be
harmless (an unknown C function, a store to an attribute, a generator) is a reason to run the function as it is.
"""

from __future__ import annotations

import builtins
import dis
import enum
import math
import operator
import os
import sys
import types
from collections import OrderedDict, defaultdict
from typing import Any

from .. import _C
from .._base import Size, Tensor, dtype, ops
from .._base import device as _device
from .._own import is_own, own_module

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# Instructions that only compute with what they are given. Others make the function run as it is.
_HARMLESS = set(
    """
    BEFORE_WITH BINARY_ADD BINARY_AND BINARY_FLOOR_DIVIDE BINARY_LSHIFT BINARY_MATRIX_MULTIPLY BINARY_MODULO
    BINARY_MULTIPLY BINARY_OP BINARY_OR BINARY_POWER BINARY_RSHIFT BINARY_SLICE BINARY_SUBSCR BINARY_SUBTRACT
    BINARY_TRUE_DIVIDE BINARY_XOR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SLICE BUILD_STRING BUILD_TUPLE CACHE CALL
    CALL_FUNCTION CALL_FUNCTION_EX CALL_FUNCTION_KW CALL_INTRINSIC_1 CALL_KW CALL_METHOD COMPARE_OP
    CONTAINS_OP CONVERT_VALUE COPY COPY_FREE_VARS DELETE_FAST DICT_MERGE DICT_UPDATE DUP_TOP DUP_TOP_TWO END_FOR
    END_SEND EXTENDED_ARG FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC FOR_ITER GEN_START GET_ITER GET_LEN INPLACE_ADD
    INPLACE_AND INPLACE_FLOOR_DIVIDE INPLACE_LSHIFT INPLACE_MATRIX_MULTIPLY INPLACE_MODULO INPLACE_MULTIPLY INPLACE_OR
    INPLACE_POWER INPLACE_RSHIFT INPLACE_SUBTRACT INPLACE_TRUE_DIVIDE INPLACE_XOR IS_OP JUMP_ABSOLUTE JUMP_BACKWARD
    JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP KW_NAMES
    LIST_APPEND LIST_EXTEND LIST_TO_TUPLE LOAD_ASSERTION_ERROR LOAD_ATTR LOAD_CLOSURE LOAD_COMMON_CONSTANT LOAD_CONST
    LOAD_DEREF LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_FAST_CHECK
    LOAD_FAST_LOAD_FAST LOAD_GLOBAL LOAD_METHOD LOAD_SMALL_INT LOAD_SPECIAL LOAD_SUPER_ATTR MAKE_CELL MAKE_FUNCTION MAP_ADD
    NOP NOT_TAKEN POP_BLOCK POP_EXCEPT POP_ITER POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE
    POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE
    POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
    POP_JUMP_IF_TRUE POP_TOP PRECALL PUSH_EXC_INFO PUSH_NULL RAISE_VARARGS RERAISE RESUME RETURN_CONST RETURN_VALUE ROT_FOUR
    ROT_N ROT_THREE ROT_TWO SETUP_FINALLY SETUP_WITH SET_FUNCTION_ATTRIBUTE STORE_FAST STORE_FAST_LOAD_FAST
    STORE_FAST_STORE_FAST STORE_SLICE STORE_SUBSCR SWAP TO_BOOL UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE
    UNPACK_EX UNPACK_SEQUENCE WITH_EXCEPT_START
    """.split()
)
_GENERATOR = {"GEN_START", "RETURN_GENERATOR", "YIELD_VALUE"}

_BUILTINS = set(
    """
    abs all any bool bytes complex dict divmod enumerate filter float format int isinstance issubclass iter len list map max
    min next object pow range repr reversed round slice sorted str sum super tuple zip property staticmethod classmethod
    NotImplemented Ellipsis True False None __debug__
    """.split()
)
_STD_FUNCTIONS = {id(f) for m in (math, operator) for f in vars(m).values() if callable(f)}
# `itemgetter` and the like hold what they were made of, and `setitem` and its kin store.
_STD_FUNCTIONS -= {
    id(getattr(operator, name))
    for name in ("itemgetter", "attrgetter", "methodcaller", "setitem", "delitem", "call")
    if hasattr(operator, name)
}

# Functions of the core that depend on their arguments and on settings that are guarded.
_SETTLED_CORE = {
    id(getattr(_C, name))
    for name in "can_cast get_default_dtype is_grad_enabled is_inference_mode_enabled promote_types".split()
}
# Modules of this package whose functions depend on their arguments and on the state of modules and optimizers alone.
_TRUSTED = (
    "rustgrad._checks",
    "rustgrad._conversions",
    "rustgrad._functions",
    "rustgrad._protocols",
    "rustgrad._tensor",
    "rustgrad.autograd._engine",
    "rustgrad.autograd.grad_mode",
    "rustgrad.nn._attention",
    "rustgrad.nn._losses",
    "rustgrad.nn._norms",
    "rustgrad.nn._pooling",
    "rustgrad.nn._resizing",
    "rustgrad.nn.functional",
    "rustgrad.nn.modules.",
    "rustgrad.nn.utils.clip_grad",
    "rustgrad.optim.",
)
_TRUSTED_CLASSES = {"no_grad", "enable_grad", "set_grad_enabled", "finfo", "iinfo"}
# Answered alike wherever a plan is made or runs.
_SETTLED = {f"rustgrad.compiler.is_{what}" for what in ("compiling", "dynamo_compiling", "exporting")}
# What may be read of a tensor besides ops: its form, which is guarded, its values, which the recorder sees, its gradient.
_OF_TENSORS = set(
    """
    H T backward bfloat16 bool cpu data detach device dim double dtype element_size float grad half int is_complex
    is_contiguous is_cpu is_cuda is_floating_point is_gpu is_leaf item itemsize long mH mT nbytes ndim ndimension nelement
    new_empty new_full new_ones new_tensor new_zeros numel numpy real imag requires_grad retains_grad shape short size stride
    to tolist type_as cuda gpu
    """.split()
)
_VALUES = (int, float, complex, bool, str, bytes, type(None), dtype, _device, Size, range, slice, type(Ellipsis))
_NO_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_METHOD = _C.Tensor.__dict__["add"]
# Functions, methods and bound methods.
_OP_TYPES = (type(ops["add"]), type(_METHOD), type(_METHOD.__get__(_C.ops["zeros"]((1,)))))
# Methods of tensors that are written in Python.
_IN_PYTHON = type(_C.Tensor.__dict__["backward"])
# Called without being named.
_FORMATTED = {"__repr__", "__str__", "__format__"}
_CONSTRUCTED = {"__init__", "__new__", "__init_subclass__", "__post_init__", "__class_getitem__"}
_NEVER_CALLED = {"__del__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__dir__", "__sizeof__"}
_MOST = 20_000


class _Plain:
    pass


class _PlainNamespace(types.SimpleNamespace):
    pass


class Unsafe(Exception):
    """The reason why a function runs as it is."""


def _kind(value):
    """How a value is compared."""
    if value is None or value is True or value is False or value is Ellipsis:
        return "is"
    return "equal" if type(value) in _VALUES else "is"


def _is_native(cls):
    """Whether a class is made by C code that is not known to depend on its arguments alone (`datetime`)."""
    if cls.__module__ in ("builtins", "collections", "itertools", "types"):
        return False
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None) or ""
    compiled = cls.__module__ in sys.builtin_module_names or file.endswith((".so", ".pyd"))
    return not cls.__flags__ & (1 << 9) or compiled


def _where(code, line=None):
    return f"{code.co_filename}:{line or code.co_firstlineno} ({code.co_name})"


class Audit:
    """The read set of a function: `checks` for the guards, the tensors that it can reach, the groups of optimizers."""

    def __init__(self, function: Any, args: tuple, kwargs: dict, slots: bool) -> None:
        self.names: set[str] = set()
        self.codes: dict[int, types.CodeType] = {}
        self.slots = slots
        while True:
            known = len(self.names)
            self._start()
            self._walk(function, "the function")
            for i, value in enumerate(args):
                self._walk(value, f"argument {i}")
            for name, value in kwargs.items():
                self._walk(value, f"argument {name}")
            self._common()
            if len(self.names) == known:
                break

    def _start(self):
        self.checks: list[tuple] = []
        self.tensors: dict[int, Tensor] = {}
        self.groups: list[tuple[dict, list[tuple[str, str, int | None]]]] = []
        self.containers: set[int] = set()
        self._seen: dict[int, Any] = {}
        self._classes: set[int] = set()
        self._constructed: set[int] = set()
        self._spaces: dict[int, tuple[dict, dict[str, tuple[str, Any]], str]] = {}
        self._formats = getattr(self, "_formats", False)

    def signature(self) -> list:
        """What the checks say, to compare two audits: the objects are alive, so their identities are theirs."""

        def key(kind, value):
            return (kind, repr(value)) if kind == "equal" else (kind, id(value) if kind == "is" else 0)

        out: list[Any] = []
        for place, what, *rest in self.checks:
            if what == "dict":
                d, exact, entries = rest
                out.append((id(d), len(d) if exact else 0, tuple((id(k), *key(m, v)) for k, m, v in entries)))
            elif what == "list":
                out.append((id(rest[0]), tuple(key(m, v) for m, v in rest[1])))
            elif what == "attribute":
                out.append((id(rest[0]), rest[1], key(rest[2], rest[3])))
            else:
                out.append((place, id(rest[0])))
        return out

    # --- code ------------------------------------------------------------------------------
    def _code(self, code, top=True):
        if id(code) in self.codes:
            return
        self.codes[id(code)] = code
        flags = code.co_flags
        if flags & 0x380 or flags & 0x20 and (top or code.co_name != "<genexpr>"):
            raise Unsafe(f"{_where(code)} is a generator or a coroutine")
        line, handlers = None, 0
        for one in dis.get_instructions(code):
            line = one.starts_line if type(one.starts_line) is int else getattr(one, "line_number", None) or line
            name = one.opname
            # A `with` block has one handler; what another catches is an error that would not come again.
            handlers += (name in ("PUSH_EXC_INFO", "SETUP_FINALLY")) - (name == "WITH_EXCEPT_START")
            if name == "STORE_ATTR":
                if one.argval != "grad":
                    raise Unsafe(f"{_where(code, line)} stores to the attribute '{one.argval}'")
                self.names.add("grad")
            elif name == "STORE_DEREF":
                if one.argval in code.co_freevars:
                    raise Unsafe(f"{_where(code, line)} stores to '{one.argval}' of the function around it")
            elif name not in _HARMLESS and not (flags & 0x20 and name in _GENERATOR):
                raise Unsafe(f"{_where(code, line)} does {name}")
            if name in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
                self._attribute(one.argval, code, line)
            if name in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"):
                self._formats = True
        if handlers > 0:
            raise Unsafe(f"{_where(code)} catches exceptions")
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                self._code(const, False)

    def _attribute(self, name, code, line):
        if name.startswith("__"):
            if name not in ("__init__", "__call__", "__len__", "__getitem__"):
                raise Unsafe(f"{_where(code, line)} reads '{name}'")
        elif name in _C.Tensor.__dict__ and name not in _OF_TENSORS:
            if not isinstance(_C.Tensor.__dict__[name], _OP_TYPES):
                raise Unsafe(f"{_where(code, line)} reads '{name}', which tensors have too")
        self.names.add(name)

    def _globals_of(self, code, space):
        """Guards the globals that a code object names, nested ones included."""
        for one in dis.get_instructions(code):
            if one.opname != "LOAD_GLOBAL":
                continue
            name = one.argval
            if name in space:
                self._entry(space, "globals", name, space[name])
                self._walk(space[name], name)
                continue
            self._entry(space, "globals", name, None, absent=True)
            known = vars(builtins)
            if name not in known:
                raise Unsafe(f"{_where(code)} reads '{name}', which is not defined")
            value = known[name]
            self._entry(known, "builtins", name, value)
            allowed = name in _BUILTINS or isinstance(value, type) and issubclass(value, BaseException)
            if not allowed:
                raise Unsafe(f"{_where(code)} uses {name}()")
            if name in ("str", "repr", "format"):
                self._formats = True
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                self._globals_of(const, space)

    # --- guards ----------------------------------------------------------------------------
    def _entry(self, space, place, name, value, absent=False):
        """Guards one entry of a dict of which others may change."""
        if id(space) not in self._spaces:
            entries: dict[str, tuple[str, Any]] = {}
            self._spaces[id(space)] = (space, entries, place)
        self._spaces[id(space)][1][name] = ("absent", None) if absent else (_kind(value), value)

    def _common(self):
        from ..nn import functional
        from ..nn.modules import module
        from ..optim import optimizer

        for space, entries, place in self._spaces.values():
            self.checks.append((place, "dict", space, False, [(k, kind, v) for k, (kind, v) in entries.items()]))
        seen = self._seen.values()
        ours = functional.__name__
        if any(isinstance(o, module.Module) or type(o) is types.FunctionType and o.__module__ == ours for o in seen):
            # What modules and these functions call, which programs replace.
            table = [
                (k, "is", v) for k, v in vars(functional).items() if isinstance(v, (types.FunctionType, *_OP_TYPES))
            ]
            self.checks.append(("nn.functional", "dict", vars(functional), False, table))
        if not any(isinstance(o, (module.Module, optimizer.Optimizer)) for o in seen):
            return
        names = ("backward_pre_hooks", "backward_hooks", "forward_pre_hooks", "forward_hooks")
        tables = [getattr(module, f"_global_{name}") for name in names]
        for table in (*tables, optimizer._global_pre_hooks, optimizer._global_post_hooks):
            self._empty(table, "hooks of all modules or optimizers")

    def _made_of(self, o, place):
        """Guards which class and which dict an object has; both can be replaced, and are read from then on."""
        self.checks.append((place, "attribute", o, "__class__", "is", type(o)))
        self.checks.append((place, "attribute", o, "__dict__", "is", vars(o)))

    def _empty(self, table, place):
        if table:
            raise Unsafe(f"there are {place}")
        self.checks.append((place, "dict", table, True, []))

    # --- objects ---------------------------------------------------------------------------
    def _walk(self, o, place):
        if id(o) in self._seen or type(o) in _VALUES and not isinstance(o, slice):
            return
        if len(self._seen) > _MOST:
            raise Unsafe("it can reach too many objects")
        self._seen[id(o)] = o
        t = type(o)
        if isinstance(o, Tensor):
            self._tensor(o, place)
        elif t is tuple or isinstance(o, tuple) and hasattr(t, "_fields") or t is slice or t is frozenset:
            items = (o.start, o.stop, o.step) if t is slice else o
            for i, item in enumerate(items):
                self._walk(item, f"{place}[{i}]")
        elif t is list:
            self.containers.add(id(o))
            self.checks.append((place, "list", o, [(_kind(v), v) for v in o]))
            for i, item in enumerate(o):
                self._walk(item, f"{place}[{i}]")
        elif t in (dict, OrderedDict, defaultdict):
            self._dict(o, place)
        elif isinstance(o, types.FunctionType):
            self._function(o, place)
        elif isinstance(o, _IN_PYTHON):
            self._function(o.__wrapped__, place)
        elif isinstance(o, types.MethodType):
            self._walk(o.__self__, place)
            self._walk(o.__func__, place)
        elif isinstance(o, type):
            if not isinstance(o, enum.EnumMeta) and any("__getattribute__" in vars(k) for k in t.__mro__[:-2]):
                raise Unsafe(f"{place} is a class whose class looks up attributes itself")
            self._class(o, place, constructed=True)
        elif isinstance(o, types.ModuleType):
            self._module(o, place)
        elif isinstance(o, (*_OP_TYPES, enum.Enum)) or id(o) in _STD_FUNCTIONS or id(o) in _SETTLED_CORE:
            pass
        elif isinstance(o, _C.Generator):
            pass
        else:
            self._instance(o, place)

    def _tensor(self, o, place):
        from ..nn.parameter import Buffer, Parameter

        if type(o) not in (Tensor, Parameter, Buffer):
            raise Unsafe(f"{place} is a {type(o).__name__}, a subclass of Tensor")
        own = o.__dict__
        if own and self.names & own.keys():
            raise Unsafe(f"{place} has attributes of its own: {', '.join(own)}")
        self.tensors[id(o)] = o

    def _dict(self, o, place, kinds=None):
        self.containers.add(id(o))
        entries = []
        for k, v in list(o.items()):
            if not (type(k) in _VALUES or isinstance(k, Tensor)):
                raise Unsafe(f"{place} has keys of type {type(k).__name__}")
            entries.append((k, (kinds or {}).get(k, _kind(v)), v))
            self._walk(v, f"{place}[{k!r}]" if type(k) in _VALUES else f"{place}[..]")
        self.checks.append((place, "dict", o, True, entries))

    def _function(self, o, place):
        own = o.__dict__
        if "_compiled_state" in own:
            return self._walk(own["_compiled_state"].function, place)
        if "_compile_disabled" in own:
            raise Unsafe(f"{place} is disabled")
        if is_own(o):
            self._trusted(o, place)
        else:
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                self.checks.append((place, "attribute", o, name, "is", getattr(o, name)))
            self._code(o.__code__)
            self._globals_of(o.__code__, o.__globals__)
            if self.names & o.__dict__.keys():
                raise Unsafe(f"{place} has attributes of its own: {', '.join(o.__dict__)}")
        for value in o.__defaults__, o.__kwdefaults__:
            self._walk(value, place)
        for name, cell in zip(o.__code__.co_freevars, o.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                raise Unsafe(f"'{name}' is not assigned yet") from None
            self.checks.append((name, "attribute", cell, "cell_contents", _kind(value), value))
            self._walk(value, name)
        return None

    def _trusted(self, o, place):
        module = o.__module__
        if not o.__code__.co_filename.startswith(HOME):
            raise Unsafe(f"{place} says that it is of {module}, and is not")
        if f"{module}.{o.__qualname__}" in _SETTLED:
            return
        if not any(module == m or m[-1] == "." and module.startswith(m) for m in _TRUSTED):
            raise Unsafe(f"{place} is {module}.{o.__qualname__}, which may depend on more than its arguments")

    def _module(self, o, place):
        # Under `python -m rustgrad` the package says that its name is `torch`.
        name, space = "rustgrad" if o is sys.modules["rustgrad"] else o.__name__, vars(o)
        if name != "rustgrad" and not name.startswith("rustgrad.") and name not in ("math", "operator"):
            if type(o) is not types.ModuleType or "__getattr__" in space:
                raise Unsafe(f"{place} is the module '{name}', which looks up attributes itself")
            for wanted in self.names - space.keys():
                self._entry(space, name, wanted, None, absent=True)
        for wanted in sorted(self.names & space.keys()):
            value = space[wanted]
            self._entry(space, name, wanted, value)
            if name in ("math", "operator") and not callable(value):
                continue
            self._walk(value, f"{name}.{wanted}")
        if name not in ("math", "operator"):
            return
        for wanted in self.names & space.keys():
            if callable(space[wanted]) and id(space[wanted]) not in _STD_FUNCTIONS:
                raise Unsafe(f"it uses {name}.{wanted}")

    def _class(self, o, place, constructed=False):
        if o in _VALUES or o in (
            list,
            tuple,
            dict,
            object,
            zip,
            map,
            filter,
            enumerate,
            reversed,
            property,
            super,
            type,
        ):
            return
        if issubclass(o, BaseException) and o.__module__ == "builtins":
            return
        if is_own(o):
            if constructed and not (o is Tensor or o.__name__ in _TRUSTED_CLASSES or self._is_kind(o)):
                raise Unsafe(f"{place} is the class {o.__name__}")
            if not o.__flags__ & (1 << 8) and id(o) not in self._classes:
                self._classes.add(id(o))
                self.checks.append((o.__name__, "class", o))
            return
        if constructed and _is_native(o):
            raise Unsafe(f"{place} is the class {o.__module__}.{o.__qualname__}, which is not written in Python")
        for k in o.__mro__:
            if k is object or is_own(k) or not k.__flags__ & (1 << 9):
                continue
            if id(k) in self._classes and not (constructed and id(k) not in self._constructed):
                continue
            self._constructed |= {id(k)} if constructed else set()
            if id(k) not in self._classes:
                self._classes.add(id(k))
                self.checks.append((k.__name__, "class", k))
            for name, value in list(vars(k).items()):
                if name.startswith("__") and name.endswith("__"):
                    if not isinstance(value, types.FunctionType) or name in _NEVER_CALLED:
                        continue
                    if name in _FORMATTED and not self._formats or name in _CONSTRUCTED and not constructed:
                        continue
                elif name not in self.names and name != "forward":
                    continue
                self._member(value, f"{k.__name__}.{name}")

    @staticmethod
    def _is_kind(o):
        """Classes that are named to ask for their instances; making one is seen, or changes nothing outside."""
        from ..nn.modules.module import Module

        return issubclass(o, (Module, Tensor, dtype, _device, Size))

    def _member(self, value, place):
        if isinstance(value, (staticmethod, classmethod)):
            self._walk(value.__func__, place)
        elif isinstance(value, property):
            for f in (value.fget, value.fset):
                if f is not None:
                    self._walk(f, place)
        else:
            self._walk(value, place)

    def _instance(self, o, place):
        from ..nn.modules.module import Module
        from ..optim.optimizer import Optimizer

        t = type(o)
        if isinstance(o, Module):
            return self._nn_module(o, place)
        if isinstance(o, Optimizer):
            return self._optimizer(o, place)
        heap = t.__flags__ & (1 << 9) and not is_own(t)
        if not (heap or t is types.SimpleNamespace) or not hasattr(o, "__dict__"):
            raise Unsafe(f"{place} is an object of type {t.__module__}.{t.__qualname__}")
        plain = _PlainNamespace if isinstance(o, types.SimpleNamespace) else _Plain
        for k in t.__mro__[:-1]:
            heap = k.__flags__ & (1 << 9) or k is types.SimpleNamespace
            # What is larger has state of its own in C: `functools.partial`, `threading.local`.
            if k.__dict__.get("__slots__") or not heap or k.__basicsize__ > plain.__basicsize__:
                raise Unsafe(f"{place} is an object of type {t.__qualname__}, which is not a plain class")
        self._class(t, place)
        self._made_of(o, place)
        space = vars(o)
        for name in sorted(self.names):
            if name in space:
                self._entry(space, place, name, space[name])
                self._walk(space[name], f"{place}.{name}")
            else:
                self._entry(space, place, name, None, absent=True)
        return None

    def _nn_module(self, o, place):
        t = type(o)
        ours = own_module(t).startswith("rustgrad.nn.modules")
        if not ours and is_own(t):
            raise Unsafe(f"{place} is a {t.__name__}")
        for k in t.__mro__[:-1]:
            if is_own(k):
                self._class(k, place)
        self._class(t, place)
        self._made_of(o, place)
        space = vars(o)
        entries = []
        for name, value in space.items():
            if name in ("_parameters", "_buffers", "_modules"):
                self._dict(value, place)
                entries.append((name, "is", value))
            elif name in _NO_HOOKS:
                self._empty(value, f"hooks of {place}")
                entries.append((name, "is", value))
            elif name in self.names or name == "forward" or ours and not name.endswith("_hooks") and name[0] != "_":
                entries.append((name, _kind(value), value))
                self._walk(value, f"{place}.{name}")
            elif ours and name.startswith("_flat"):
                entries.append((name, "is", value))
                self._walk(value, f"{place}.{name}")
            else:
                entries.append((name, "present", None))
        self.checks.append((place, "dict", space, True, entries))

    def _optimizer(self, o, place):
        t = type(o)
        if not own_module(t).startswith("rustgrad.optim."):
            raise Unsafe(f"{place} is a {t.__name__}, an optimizer of its own")
        for k in t.__mro__[:-1]:
            self._class(k, place)
        self._made_of(o, place)
        space = vars(o)
        if "step" in space or "zero_grad" in space:
            raise Unsafe(f"{place} has a step of its own")
        entries = []
        for name, value in space.items():
            if name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
                self._empty(value, f"hooks of {place}")
            elif name == "param_groups":
                self.containers.add(id(value))
                self.checks.append((f"{place}.param_groups", "list", value, [("is", v) for v in value]))
                for i, group in enumerate(value):
                    self._group(t, group, f"{place}.param_groups[{i}]")
            elif name in ("state", "defaults"):
                self._walk(value, f"{place}.{name}")
            else:
                entries.append((name, "present", None))
                continue
            entries.append((name, "is", value))
        self.checks.append((place, "dict", space, True, entries))

    def _group(self, t, group, place):
        slotted = self.slots and t._fused_options and type(group.get("lr")) is float
        numbers = []
        if slotted and t._may_fuse(group):
            for argument, name, index in t._fused_options:
                value = group.get(name)
                values = (value,) if index is None else value
                if type(values) is tuple and all(type(v) is float for v in values):
                    numbers.append((argument, name, index))
            self.groups.append((group, numbers))
        self._dict(group, place, {name: "present" for _, name, _ in numbers})
