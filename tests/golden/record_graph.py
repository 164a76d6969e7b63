"""Records PyTorch's graphs: python tests/golden/record_graph.py > tests/golden/graph.json

Runs every case of `tests/graph/` with PyTorch; `support/recorded.py` says what a case is.
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from graph import CASES
from support.recorded import outcome

lines = [f"{json.dumps(name)}: {json.dumps(outcome(case, torch))}" for name, case in CASES.items()]
print("{\n" + ",\n".join(lines) + "\n}")
