from __future__ import annotations
from ._calls import below
def record(op, args, kwargs, tensors):
    from ._calls import Frame
    from ._stack import state
    from ._calls import quietly
    f = Frame(op, tensors); state.frames.append(f)
    try:
        return quietly(op, args, kwargs, tensors)
    finally:
        state.frames.pop()
