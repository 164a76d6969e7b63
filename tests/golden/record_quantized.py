"""Records what PyTorch gives for the cases of `support/quantized.py`, in quantized.json beside this file.

python tests/golden/record_quantized.py      # with torch installed
"""

import json
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))
from support import quantized  # noqa: E402

warnings.simplefilter("ignore")
found = {name: quantized.plain(torch, value) for name, value in quantized.cases(torch)}
text = ",\n".join(f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in found.items())
Path(__file__).with_name("quantized.json").write_text("{\n" + text + "\n}\n")
