"""Writes what PyTorch draws on the CPU: python tests/golden/record_random.py > tests/golden/random.json

Run it on a processor that is not Intel's: there PyTorch's `bernoulli_(p)` uses the generator's own words.
"""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.random_programs import DRAWS, FLIPS, run

if __name__ == "__main__":
    lines = (f"{json.dumps(source)}: {json.dumps(run(torch, source))}" for source in [*DRAWS, *FLIPS])
    print("{\n" + ",\n".join(lines) + "\n}")
