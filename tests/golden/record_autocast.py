"""Records the dtypes of PyTorch's results under autocast for bfloat16 on the CPU.

    python tests/golden/record_ops.py --list > samples.json                        # with rustgrad: the samples of OPS
    python tests/golden/record_autocast.py samples.json > tests/golden/autocast.json   # with torch

For the first sample of each name, with its float tensors in float32 and in bfloat16. Calls that fail are left out.
"""

import json
import os
import sys
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]


def dtypes(result) -> str:
    """The dtypes of the tensors in a result: `float32,int64`."""
    from support import target

    return ",".join(target.dtype_name(t.dtype) for t in target.tensors(result))


def variants(text: str) -> list[str]:
    """The sample with its float tensors in each dtype."""
    from support import samples

    return [samples.retyped(text, d) for d in ("f32", "bf16")] if "f32[" in text else []


def main(path: str) -> None:
    os.environ["RUSTGRAD_TEST_MODULE"] = "torch"
    from record_ops import torch_call
    from support import target
    from support.samples import parse

    warnings.simplefilter("ignore")
    found = {}
    for row in json.loads(Path(path).read_text()):
        for text in variants(row["samples"][0]) if row["samples"] and not row["hidden"] else ():
            args, kwargs, _ = target.build(parse(text))
            try:
                with target.torch.autocast("cpu"):
                    found[f"{row['public']}({text})"] = dtypes(torch_call(row["public"], args, kwargs))
            except Exception:
                continue
    print(json.dumps({"torch": target.torch.__version__.split("+")[0], "dtypes": found}, indent=0))


if __name__ == "__main__":
    main(sys.argv[1])
