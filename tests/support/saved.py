"""The op table through files: what is loaded computes on other values what the op computes."""

import tempfile
import warnings
from pathlib import Path

from support import target
from support.captures import turned
from support.checking import each
from support.compiled import difference, function_of, seen
from support.optable import Op
from support.target import torch

# Why calls cannot be plans at all; anything else is a plan that a file cannot hold.
NO_PLAN = (
    "depends on values", "warns", "reads the values", "makes a tensor of Python values", "changes the shape", "meta device",
    "resizes a tensor", "failed", "gives a tensor other data", "may depend on more than its arguments",
)  # fmt: skip


def saved(op: Op):
    """Samples of an op, saved and loaded; the calls of the loaded program are those of the op, bit by bit."""
    function = function_of(op)

    def f(*args, **kwargs):
        return function(*args, **kwargs)

    def check(call):
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            path = Path(folder) / "plan.rgx"
            args, kwargs, _ = target.build(call, "cpu")
            kwargs = op.placed(args, kwargs, "cpu")
            try:
                torch.compiler.save(f, path, *args, **kwargs)
            except torch.compiler.Unsupported as reason:
                return "" if any(text in str(reason) for text in NO_PLAN) else str(reason)
            program = torch.compiler.load(path)
            for i, maker in enumerate((target.make, turned)):
                runs = []
                for run in (f, program):
                    args, kwargs, _ = target.build(call, "cpu", maker=maker)
                    runs.append(seen(run, args, op.placed(args, kwargs, "cpu")))
                if told := difference(op, runs[1], runs[0], i):
                    return told
        return ""

    return each(op, check, name="saved")
