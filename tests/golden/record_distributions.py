"""Records PyTorch's figures for the distributions of `tests/support/distributions.py`.

python tests/golden/record_distributions.py > tests/golden/distributions.json     # with torch
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))


def main():
    import torch
    from support import distributions as cases

    torch.set_default_dtype(torch.float64)
    names = list(cases.instances(torch))
    figures = {n: {w: cases.quantity(torch, n, w) for w in cases.QUANTITIES} for n in names}
    pairs = {f"{p} {q}": cases.divergence(torch, p, q) for p in names for q in names}
    shown = lambda found: {k: v.tolist() for k, v in found.items() if v is not None}
    record = {"torch": torch.__version__, "figures": {n: shown(f) for n, f in figures.items()}, "kl": shown(pairs)}
    json.dump(record, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
