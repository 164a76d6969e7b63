"""Compresses wheels again, with Zopfli: python tools/recompress.py dist/*.whl

The format stays zip's deflate, which pip reads; Zopfli only searches longer for the shortest form (3 % of rustgrad's wheel, a minute).
Contents, names and dates of the entries stay as they are.
"""

import os
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED
from zipfile import ZipFile as Source

from zopfli import ZipFile as Target


def recompress(path: Path) -> None:
    before, made = path.stat().st_size, path.with_suffix(".tmp")
    with Source(path) as source, Target(made, "w", ZIP_DEFLATED) as target:
        for entry in source.infolist():
            target.writestr(entry, source.read(entry))
    os.replace(made, path)
    print(f"{path.name}: {before / 1e6:.2f} -> {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        recompress(Path(name))
