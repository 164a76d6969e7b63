"""The nodes of the results of every op: their names, and the names of their saved attributes."""

from support import target
from support.checking import each
from support.optable import Op, recorded


def nodes(outputs) -> list:
    """[name, [saved attributes]] of the node of every output; None for a leaf."""
    return [[t.grad_fn.name(), kept(t.grad_fn)] if t.grad_fn else None for t in outputs]


def kept(node) -> list:
    return sorted(n.removeprefix("_saved_") for n in dir(node) if n.startswith("_saved_"))


def compared(pick):
    """A property: what `pick` extracts from each node equals PyTorch's."""

    def check_op(op: Op, device: str):
        def check(call):
            answer = recorded(op, call.text)
            if not answer or "nodes" not in answer:
                return None
            args, kwargs, _ = target.build(call, device, grad=True)
            got = nodes(target.carriers(op.run(args, kwargs)))
            got, want = [[n and pick(n) for n in found] for found in (got, answer["nodes"])]
            return "" if got == want else f"{got} is not {want}"

        return each(op, check, name="nodes")

    return check_op


names = compared(lambda node: node[0])
keeps = compared(lambda node: node[1])
