"""Records what PyTorch gives for the cases of `support/quantized.py` and `quantized_programs.py`, in quantized.json beside this file.

python tests/golden/record_quantized.py      # with torch installed
"""

import json
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))
from support import quantized, quantized_programs  # noqa: E402

warnings.simplefilter("ignore")
every = (*quantized.cases(torch), *quantized_programs.cases(torch))
found = {name: quantized.plain(torch, value) for name, value in every}
text = ",\n".join(f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in found.items())
Path(__file__).with_name("quantized.json").write_text("{\n" + text + "\n}\n")

# A file with quantised tensors, packed weights and parameters, for `test_quantized_tensors.py`.
x = quantized.numbers(torch, 3, 4)
scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 0, -2])
lstm = torch.ao.quantization.quantize_dynamic(
    torch.nn.Sequential(quantized_programs.filled(torch, torch.nn.LSTM(5, 4)), torch.nn.Linear(4, 2)).eval()
)
q = torch.quantize_per_tensor(x, 0.05, 9, torch.quint8)
kept = {
    "q": q,
    "view": q.t(),
    "channels": torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8),
    "wide": torch.quantize_per_tensor(x, 0.001, 0, torch.qint32),
    "half bytes": torch.quantize_per_tensor(x[:, :3], 0.5, 4, torch.quint4x2),
    "scheme": torch.per_channel_symmetric,
    "dtype": torch.qint8,
}
torch.save({"tensors": kept, "lstm": lstm.state_dict()}, Path(__file__).with_name("quantized.pt"))
