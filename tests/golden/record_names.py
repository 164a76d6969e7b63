"""Records the public names of PyTorch's namespaces: python tests/golden/record_names.py > tests/golden/names.json

docs/absent.md lists which of them are not here; tools/generate.py makes that list from this file.
"""

import json
import sys

import torch

SPACES = (
    "torch Tensor autograd autograd.functional autograd.graph linalg special fft random serialization nn nn.functional "
    "nn.init nn.utils optim optim.lr_scheduler utils.data"
).split()
# Parts of PyTorch that are missing as a whole; the text of the page lists them.
OUTSIDE = (
    "sparse quant mkldnn cudnn cufft miopen xpu mps vulkan fbgemm nested distributed jit compile export vmap autocast "
    "hspmm hsmm saddmm dsmm smm csr csc bsr bsc coo crow ccol col_ind row_ind q_ qint quint bits float8 float4 int1 int2 int3 "
    "int4 int5 int6 int7 sym_ import_ir fork wait parse_ vitals script merge_type unify profiler hip ipu get_file set_file"
).split()


def public(space):
    """The functions, dtypes and, but for the top level, the classes of a namespace that are PyTorch's own."""
    root = torch
    for part in space.split(".") if space != "torch" else ():
        root = getattr(root, part)
    top = space in ("torch", "Tensor")
    for name in sorted(dir(root) if top else getattr(root, "__all__", None) or dir(root)):
        value = getattr(root, name, None)
        home = getattr(value, "__module__", None) or "torch"
        plain = isinstance(value, torch.dtype) or (callable(value) and not (top and isinstance(value, type)))
        if name.startswith("_") or not home.startswith("torch") or not (plain or space == "Tensor"):
            continue
        if not (top and any(word in name for word in OUTSIDE)):
            yield name


def main():
    names = {space: " ".join(public(space)) for space in SPACES}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in names.items())
    sys.stdout.write(f'{{"version": "{torch.__version__}", "names": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
