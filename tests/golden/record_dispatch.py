"""Records with PyTorch which ops a mode below autograd sees: `python tests/golden/record_dispatch.py` writes dispatch.json."""

import json
import sys
from pathlib import Path

import torch
import torch.utils._python_dispatch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.dispatched import PROGRAMS, sequence  # noqa: E402

found = {name: sequence(torch, name) for name in PROGRAMS}
Path(__file__).with_name("dispatch.json").write_text(json.dumps(found, indent=0) + "\n")
