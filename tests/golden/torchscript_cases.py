"""What `record_torchscript.py` records: archives by name, with what PyTorch computes by them."""

# ruff: noqa: B007, UP031, E702
import io
import warnings
import zipfile

import torch
from torch import Tensor

warnings.simplefilter("ignore")
torch.manual_seed(0)
CASES = {}


def plain(value):
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    return [plain(v) for v in value] if isinstance(value, list) else value


def save(name, m, *args, grads=True, extra=None):
    """Writes an archive, and what the module that PyTorch reads from it computes."""
    scripted = m if isinstance(m, (torch.jit.ScriptModule, torch.jit.ScriptFunction)) else torch.jit.script(m)
    file = io.BytesIO()
    torch.jit.save(scripted, file, **({"_extra_files": extra} if extra else {}))
    file.seek(0)
    read = torch.jit.load(file)
    state = {k: v.clone() for k, v in read.state_dict().items()}
    torch.manual_seed(3)
    out, found = read(*args), None
    if grads and isinstance(out, Tensor) and out.requires_grad:
        out.float().pow(2).sum().backward()
        found = {n: p.grad for n, p in read.named_parameters() if p.grad is not None}
        out = out.detach()
    recorded = io.BytesIO()
    torch.save((plain(args), plain(out), found, state), recorded)
    CASES[name] = without_sources(file.getvalue()), recorded.getvalue()


def without_sources(data):
    """An archive without the lines of the program that its code came from."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            if not info.filename.endswith(".debug_pkl"):
                new.writestr(zipfile.ZipInfo(info.filename), old.read(info))
    return made.getvalue()
