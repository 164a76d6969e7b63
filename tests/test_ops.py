"""The table: every op of OPS x every property, on both devices.

Each property is one function below; it gets an op and a device and checks all of the op's samples. The table generates
the strided, expanded, empty, 0-d, special and double-precision cases itself. Tests are skipped only without a GPU;
properties that do not hold yet are strict xfails with reasons in `support/known.py`.
"""

import pytest
from conftest import need
from support import batches, captures, extremes, forward_mode, known, layouts, nodes, numeric, properties, target
from support.optable import ops

# property -> (function, devices, which ops it applies to)
PROPERTIES = {
    "forward": (properties.forward, "both", lambda op: True),
    "gradient": (properties.gradient, "cpu", lambda op: op.differentiable),
    "gradcheck": (properties.gradcheck, "cpu", lambda op: op.differentiable),
    "gradgradcheck": (properties.gradgradcheck, "cpu", lambda op: op.differentiable),
    "forward mode": (forward_mode.forward_mode, "cpu", lambda op: op.differentiable),
    "same as CPU": (properties.same_as_cpu, "gpu", lambda op: True),
    "on device": (properties.on_device, "gpu", lambda op: op.gpu),
    "strided": (properties.strided, "both", lambda op: True),
    "expanded": (properties.expanded, "both", lambda op: True),
    "loose strides": (layouts.loose_strides, "cpu", lambda op: True),
    "strides": (layouts.same_strides, "both", lambda op: not op.hidden),
    "node names": (nodes.names, "cpu", lambda op: op.differentiable and not op.hidden),
    "nodes keep": (nodes.keeps, "cpu", lambda op: op.differentiable and not op.hidden),
    "extremes": (
        properties.extreme,
        "both",
        lambda op: bool(op.reference) and not op.undefined and extremes.pointwise(op),
    ),
    "edges": (properties.edges, "both", lambda op: True),
    "any byte": (properties.any_byte, "both", lambda op: True),
    "result dtype": (properties.result_dtype, "cpu", lambda op: True),
    "inferred": (captures.inferred, "both", lambda op: op.kind != "composite"),
    "decomposes": (captures.decomposes, "both", lambda op: op.kind == "composite"),
    "shaders": (captures.shaders, "cpu", lambda op: op.kind == "composite"),
    "meta": (captures.meta, "cpu", lambda op: True),
    "replay": (captures.replay, "both", lambda op: True),
    "vmap": (batches.vmap, "cpu", lambda op: True),
    "in-place": (properties.in_place, "both", lambda op: op.inplace and not op.only_inplace),
    "out": (properties.out, "both", lambda op: op.out),
    "method": (properties.method, "cpu", lambda op: op.method and "." not in op.public),
    "fused": (properties.fused, "both", lambda op: op.fused),
    "errors": (properties.errors, "both", lambda op: True),
    "example": (properties.example, "cpu", lambda op: ">>>" in op.doc),
}


def cases():
    for name, (_, devices, applies) in PROPERTIES.items():
        for device in ("cpu", "gpu") if devices == "both" else (devices,):
            for op in filter(applies, ops()):
                reason = known.XFAIL.get((name, op.name)) or known.XFAIL.get((f"{name} on {device}", op.name))
                marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
                yield pytest.param(name, device, op, id=f"{name}-{device}-{op.name}".replace(" ", "_"), marks=marks)


@pytest.mark.parametrize(("name", "device", "op"), list(cases()))
def test_op(name, device, op, record_property):
    record_property("property", name)
    record_property("device", device)
    need(device)
    problems, count = PROPERTIES[name][0](op, device)
    record_property("samples", count)
    assert not problems, f"{op.name}, {name} on {device}:\n  " + "\n  ".join(problems)


def test_every_known_failure_is_an_op_of_the_table():
    names = {op.name for op in ops()}
    properties_named = {*PROPERTIES, *(f"{p} on {d}" for p in PROPERTIES for d in ("cpu", "gpu"))}
    for name, op in known.XFAIL if not target.STAND_IN else ():
        assert op in names and name in properties_named, f"known.py: ({name}, {op}) is not in the table"


def test_differences_catch_a_wrong_gradient():
    """Tests the test: a function with a wrong gradient must be caught."""
    torch = target.torch

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x * 2.001

    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert "by differences" in numeric.check(lambda xs: [Wrong.apply(xs[0])], [x])
    assert numeric.check(lambda xs: [xs[0] * xs[0]], [x]) == ""
