"""Whether a value that a call has just returned is only moved until its function returns.

`float(t)` gives Python a plain float, which shows nothing of what happens to it. A plan may still stand for the call if the
rest of the function's code takes the value nowhere but into its result: into tuples, lists and values of dicts, and into
local variables that go there. The instructions are those of CPython 3.11 to 3.13; for other versions the answer is no.
"""

from __future__ import annotations

import dis
import os
import sys
from types import CodeType, FrameType

__all__ = ["moves_on"]

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NOTHING = {"CACHE", "EXTENDED_ARG", "KW_NAMES", "NOP", "PRECALL", "RESUME"}
# What is done with local variables, one after the other.
_LOCALS = {
    "LOAD_FAST": ("load",),
    "LOAD_FAST_CHECK": ("load",),
    "LOAD_FAST_LOAD_FAST": ("load", "load"),
    "STORE_FAST": ("store",),
    "STORE_FAST_LOAD_FAST": ("store", "load"),
    "STORE_FAST_STORE_FAST": ("store", "store"),
}
_METHODS_BY_ARGUMENT = sys.version_info >= (3, 12)
# How many values are taken from the stack and put there, by the instruction's argument where that is a function.
_OTHERS = {
    "BINARY_OP": (2, 1),
    "BINARY_SUBSCR": (2, 1),
    "CALL": (lambda n: n + 2, 1),
    "CALL_KW": (lambda n: n + 3, 1),
    "COMPARE_OP": (2, 1),
    "LOAD_ATTR": (1, (lambda n: 1 + (n & 1)) if _METHODS_BY_ARGUMENT else 1),
    "LOAD_CLOSURE": (0, 1),
    "LOAD_CONST": (0, 1),
    "LOAD_DEREF": (0, 1),
    "LOAD_GLOBAL": (0, lambda n: 1 + (n & 1)),
    "LOAD_METHOD": (1, 2),
    "POP_TOP": (1, 0),
    "PUSH_NULL": (0, 1),
    "UNARY_NEGATIVE": (1, 1),
    "UNARY_NOT": (1, 1),
}


def moves_on() -> bool:
    """Asked from a call within a call of a compiled function."""
    # What is called here is not called by the function.
    watching = sys.getprofile()
    sys.setprofile(None)
    try:
        return _frames_move(sys._getframe(1))
    finally:
        sys.setprofile(watching)


def _frames_move(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_HERE):
            return True
        if not only_moves(frame.f_code, frame.f_lasti):
            return False
        frame = frame.f_back
    return False


def only_moves(code: CodeType, at: int) -> bool:
    """Whether the result of the call at this offset goes from there into the result of the function alone."""
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        return False
    instructions = [i for i in dis.get_instructions(code) if i.offset >= at]
    # A call of a class may be made by the instruction that prepares it.
    if [i.opname for i in instructions[:2]] == ["PRECALL", "CALL"]:
        del instructions[0]
    elif not instructions or instructions[0].offset != at or instructions[0].opname not in ("CALL", "CALL_KW"):
        return False
    # What is below is not the value.
    stack: list[bool] = [True]
    names: set[str] = set()

    def pop(n: int) -> list[bool]:
        taken = [stack.pop() if stack else False for _ in range(n)]
        return taken[::-1]

    for one in instructions[1:]:
        name, n = one.opname, one.arg or 0
        if one.is_jump_target:
            return False
        if name in _NOTHING:
            continue
        if name == "RETURN_VALUE":
            return True
        if name in _LOCALS:
            variables = [one.argval] if isinstance(one.argval, str) else one.argval
            for action, variable in zip(_LOCALS[name], variables, strict=True):
                if action == "load":
                    stack.append(variable in names)
                else:
                    (names.add if any(pop(1)) else names.discard)(variable)
        elif name in ("COPY", "SWAP"):
            stack[:0] = [False] * (n - len(stack))
            if name == "COPY":
                stack.append(stack[-n])
            else:
                stack[-1], stack[-n] = stack[-n], stack[-1]
        elif name in ("BUILD_TUPLE", "BUILD_LIST"):
            stack.append(any(pop(n)))
        elif name == "BUILD_CONST_KEY_MAP":
            stack.append(any(pop(n + 1)))
        elif name == "BUILD_MAP":
            items = pop(2 * n)
            if any(items[::2]):
                return False
            stack.append(any(items))
        elif name in _OTHERS:
            taken, put = (count(n) if callable(count) else count for count in _OTHERS[name])
            if any(pop(taken)):
                return False
            stack.extend([False] * put)
        else:
            return False
    return False
