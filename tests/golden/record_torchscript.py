"""Archives of TorchScript as PyTorch writes them, with the results and gradients that it computes; `make golden` runs it with PyTorch.

python tests/golden/record_torchscript.py FILE.zip
"""

import sys
import zipfile

# Each records what it defines.
import torchscript_classes  # noqa: F401
import torchscript_modules  # noqa: F401
import torchscript_ops  # noqa: F401
import torchscript_programs  # noqa: F401
import torchscript_values  # noqa: F401
from torchscript_cases import CASES

with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name, (data, recorded) in CASES.items():
        archive.writestr(zipfile.ZipInfo(f"{name}.pt"), data, zipfile.ZIP_DEFLATED, 9)
        archive.writestr(zipfile.ZipInfo(f"{name}.ref"), recorded, zipfile.ZIP_DEFLATED, 9)
print(f"{len(CASES)} archives")
