"""Prints the requirements of one extra of pyproject.toml, one per line: python tools/extras.py test

So that `make` can install the requirements of tests and demo before, and independently of, building the wheel.
"""

import re
import sys
from pathlib import Path


def requirements(extra: str) -> list[str]:
    """Reads the list without tomllib, which Python 3.10 lacks: one quoted requirement per line."""
    text = Path(__file__).parent.parent.joinpath("pyproject.toml").read_text()
    section = text.split("[project.optional-dependencies]", 1)[1].split("\n[", 1)[0]
    found = re.search(rf"^{re.escape(extra)} = \[(.*?)\]", section, re.M | re.S)
    if not found:
        raise SystemExit(f"extras: pyproject.toml has no extra named {extra!r}")
    return re.findall(r'"([^"]+)"', found[1])


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1])))
