"""The op table for the tests: the extension's export, one `Op` per row."""

import functools
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from support import target
from support.samples import Call, expand, parse

RECORDED = Path(__file__).parent.parent / "golden"
GOLDEN = Path(os.environ.get("RUSTGRAD_GOLDEN", RECORDED / "ops.json"))


@dataclass
class Op:
    """One row of `rustgrad._C.op_table()`."""

    name: str
    public: str
    signature: str
    kind: str = "composite"
    doc: str = ""
    function: bool = True
    method: bool = False
    inplace: bool = False
    out: bool = False
    differentiable: bool = False
    no_grad_reason: str = ""
    gpu: bool = True
    samples: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    dtypes: list | None = None
    fused: str | None = None
    hidden: bool = False
    only_inplace: bool = False
    # A NumPy expression over x0, x1, ... and the named arguments; "shape" if the values are undefined.
    reference: str | None = None

    @property
    def undefined(self) -> bool:
        """Whether only shape and dtype are defined: random values, or uninitialised memory."""
        return self.reference == "shape" or "Generator" in self.signature or self.leaf.startswith("empty")

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers, which are others on each device."""
        return "Generator" in self.signature or self.leaf == "_dropout_mask"

    @property
    def reads_host(self) -> bool:
        """Whether what its results look like depends on values."""
        return self.kind == "reads host"

    @property
    def leaf(self) -> str:
        return self.public.rsplit(".", 1)[-1]

    def call(self, *args, **kwargs):
        """The op's Python callable: the function, or the method if there is no function."""
        if self.function or self.hidden or not args:
            return invoke(self.public, args, kwargs)
        return invoke(f"Tensor.{self.leaf}", args, kwargs)

    def written_out(self) -> list[str]:
        """Every sample in every dtype of its `f?` patterns, as recorded."""
        return [text for sample in self.samples for text in expand(sample, self.dtypes)]

    def sample_texts(self) -> list[str]:
        """The samples, expanded to several dtypes; PyTorch decides which of them exist."""
        texts = []
        for sample in self.samples:
            expanded = expand(sample, self.dtypes)
            refused = [t for t in expanded if "error" in (recorded(self, t) or {})] if len(expanded) > 1 else []
            texts += [t for t in expanded if t not in refused]
        return texts

    def calls(self) -> list[Call]:
        return [parse(text) for text in self.sample_texts()]

    def run(self, args, kwargs):
        """The call, from a fixed random state, so that random ops are reproducible."""
        target.torch.manual_seed(0)
        return self.call(*args, **kwargs)

    def placed(self, args, kwargs, device: str) -> dict:
        """The keyword arguments, with a device if the op creates a tensor without tensor arguments."""
        makes = "Device" in self.signature and not any(target.tensors(a) for a in args)
        return {**kwargs, "device": device} if makes and device != "cpu" else kwargs


def invoke(public: str, args, kwargs):
    """Calls an op by its public name; an op that writes to its first argument gets a copy of it.

    An op that writes to lists of tensors gets copies of them, which are taken as its results.
    """
    if public.endswith("_") and args and isinstance(args[0], list):
        args = [[t.clone() for t in a] if isinstance(a, list) else a for a in args]
        target.resolve(public)(*args, **kwargs)
        return target.tensors(args)
    if public.endswith("_") and args and isinstance(args[0], target.torch.Tensor):
        args = [args[0].clone(), *args[1:]]
    return target.resolve(public)(*args, **kwargs)


@functools.cache
def ops() -> list[Op]:
    if target.STAND_IN:
        from support.stand_in import TABLE

        rows = TABLE
    else:
        rows = target.torch._C.op_table()
    known = Op.__dataclass_fields__
    return [Op(**{k: v for k, v in row.items() if k in known and v is not None}) for row in rows]


@functools.cache
def golden() -> dict:
    if not GOLDEN.exists():
        return {}
    return json.loads(GOLDEN.read_text())["calls"]


def recorded(op: Op, text: str, what: str = "") -> dict | None:
    """PyTorch's recorded result of this call, or None."""
    return golden().get(key(op.public, text, what))


@functools.cache
def names_of_pytorch() -> frozenset:
    names = json.loads((RECORDED / "names.json").read_text())["names"]
    inside = {"torch": "", "Tensor": ""}
    return frozenset(inside.get(space, space + ".") + name for space, found in names.items() for name in found.split())


def only_here(op: Op) -> bool:
    """Whether PyTorch has no such op, so that nothing can be recorded: the reference is the only oracle."""
    return bool(op.reference) and op.public.removeprefix("Tensor.") not in names_of_pytorch()


def key(public: str, text: str, what: str = "") -> str:
    return f"{public}({text})" + (f" {what}" if what else "")
