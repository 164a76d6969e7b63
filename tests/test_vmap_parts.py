"""`vmap` over containers of a library that replaces its parts, as tensordict does; results are those of PyTorch, which are also plain stacks."""

import importlib

import pytest
import rustgrad as torch
from rustgrad.utils import _pytree

PARTS = importlib.import_module("rustgrad._functorch.vmap")
NATIVES = importlib.import_module("rustgrad._C._functorch")


class Box:
    """Named tensors with a batch; keeps what a locked one was told, as tensordict does."""

    def __init__(self, items, batch, locked=False):
        self.items, self.batch, self.is_locked, self.kept = items, batch, locked, {}

    def lock_(self):
        self.is_locked = True
        return self

    def _mapped(self, key, batch, call):
        if key not in self.kept or not self.is_locked:
            self.kept[key] = Box({k: call(v) for k, v in self.items.items()}, batch, self.is_locked)
        return self.kept[key]

    def add(self, dim, level):
        batch = [n for i, n in enumerate(self.batch) if i != dim]
        return self._mapped(("add", dim, level), batch, lambda v: NATIVES._add_batch_dim(v, dim, level))

    def remove(self, name, level, size, dim):
        batch = [*self.batch[:dim], size, *self.batch[dim:]]
        key = ("remove", level, size, dim)
        return self._mapped(key, batch, lambda v: PARTS._maybe_remove_batch_dim(name, v, level, size, dim))


_pytree.register_pytree_node(
    Box, lambda b: ([*b.items.values()], ([*b.items], b.batch)), lambda v, c: Box(dict(zip(c[0], v, strict=True)), c[1])
)


def is_box(value):
    return isinstance(value, Box)


@pytest.fixture
def boxes(monkeypatch):
    """`vmap` that keeps boxes whole."""

    def process(in_dims, args, func):
        flat, spec = _pytree.tree_flatten(args, is_leaf=is_box)
        dims = PARTS._broadcast_to_and_flatten(in_dims, spec)
        pairs = [(a, d) for a, d in zip(flat, dims, strict=True) if d is not None]
        return [a.batch[d] if is_box(a) else a.size(d) for a, d in pairs][0], dims, flat, spec

    def create(dims, flat, level, spec):
        def one(a, d):
            return a if d is None else a.add(d, level) if is_box(a) else PARTS._add_batch_dim(a, d, level)

        return _pytree.tree_unflatten([one(a, d) for a, d in zip(flat, dims, strict=True)], spec)

    def unwrap(outputs, out_dims, level, size, func):
        name = PARTS._get_name(func)

        def one(o):
            remove = (lambda *a: o.remove(*a)) if is_box(o) else lambda n, *a: PARTS._maybe_remove_batch_dim(n, o, *a)
            return remove(name, level, size, out_dims)

        return _pytree.tree_map(one, outputs, is_leaf=is_box)

    monkeypatch.setattr(PARTS, "_process_batched_inputs", process)
    monkeypatch.setattr(PARTS, "_create_batched_inputs", create)
    monkeypatch.setattr(PARTS, "_unwrap_batched", unwrap)


def box(locked=False):
    a, b = torch.arange(12.0).reshape(3, 4), torch.ones(3, 2)
    return Box({"a": a, "b": b}, [3], locked)


@pytest.mark.parametrize("locked", [False, True])
def test_boxes_in_and_out(boxes, locked):
    given = box(locked)
    seen = []

    def f(x, scale):
        seen.append((x.items["a"].shape, x.batch, x.is_locked, NATIVES.is_batchedtensor(x.items["a"])))
        return Box({"s": x.items["a"].sum() * scale, "b": x.items["b"] + 1}, x.batch)

    for scale in (2.0, 3.0):
        given.items["a"].add_(1)
        out = torch.vmap(f, (0, None))(given, torch.tensor(scale))
        assert out.batch == [3] and out.items["b"].shape == (3, 2)
        assert out.items["s"].tolist() == (given.items["a"].sum(1) * scale).tolist()
    assert seen == [((4,), [], locked, True)] * 2


@pytest.mark.parametrize("locked", [False, True])
def test_levels_and_gradients(boxes, locked):
    w = torch.arange(6.0).reshape(3, 2).requires_grad_()
    given = Box({"w": w}, [3], locked)

    def f(x, v):
        return torch.vmap(lambda one: (x.items["w"] * one).sum())(v)

    out = torch.vmap(f)(given, torch.ones(3, 5, 2))
    assert out.tolist() == [[1.0] * 5, [5.0] * 5, [9.0] * 5]
    out.sum().backward()
    assert w.grad.tolist() == [[5.0, 5.0]] * 3


def test_pieces_are_put_together(boxes):
    out = torch.vmap(lambda x: Box({"a": x.items["a"] * 2}, []), out_dims=0, chunk_size=2)(box())
    assert out.items["a"].equal(box().items["a"] * 2) and out.batch == [3]


def test_what_does_not_depend_on_the_example_is_repeated(boxes):
    out = torch.vmap(lambda x: Box({"c": torch.ones(2)}, []))(box())
    assert out.items["c"].tolist() == [[1.0, 1.0]] * 3


def test_errors(boxes):
    with pytest.raises(ValueError, match="must only return Tensors"):
        torch.vmap(lambda x: 1)(torch.ones(3))
    with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
        torch.vmap(lambda x: x, out_dims=None)(torch.ones(3))
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.vmap(lambda x: x, out_dims=3)(torch.ones(3))
    assert torch.vmap(lambda x: x + 1)(torch.ones(3)).tolist() == [2.0] * 3


def test_own_parts_are_plain_vmap():
    assert PARTS.replaced() is None
    size, dims, flat, spec = PARTS._process_batched_inputs((0, None), (torch.ones(3, 2), 1.0), len)
    assert (size, dims) == (3, [0, None])
    one, number = PARTS._create_batched_inputs(dims, flat, 1, spec)
    assert one.shape == (2,) and number == 1.0 and NATIVES.is_batchedtensor(one)
    assert not NATIVES.is_batchedtensor(torch.ones(3))


def test_replacing_one_part_is_enough(monkeypatch):
    own, calls = PARTS._unwrap_batched, []
    monkeypatch.setattr(PARTS, "_unwrap_batched", lambda *args: calls.append(args[3]) or own(*args))
    x = torch.arange(6.0).reshape(3, 2)
    assert torch.vmap(lambda v: {"s": v.sum()}, out_dims=0)(x)["s"].tolist() == [1.0, 5.0, 9.0]
    assert calls and set(calls) == {3}
    assert torch.vmap(torch.sum, in_dims=1)(torch.ones(0, 2)).tolist() == [0.0, 0.0]
    assert torch.vmap(torch.sum)(torch.ones(0, 2)).shape == (0,)
