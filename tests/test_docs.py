"""docs/autograd.md: its blocks run, one after another, and its pictures are what the script draws."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from support import target

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs" / "autograd.md"

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="the page is about rustgrad")


def test_blocks_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    scope = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), scope)
    assert len(blocks) >= 8


def test_pictures_are_drawn_anew(tmp_path):
    folder = pathlib.Path(target.torch.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, ROOT / "tools" / "pictures.py", tmp_path], check=True, env=env)
    drawn = {p.name: p.read_text() for p in tmp_path.iterdir()}
    kept = {p.name: p.read_text() for p in (ROOT / "docs" / "img").glob("*.svg")}
    assert drawn == kept
    assert all(f"img/{name}" in PAGE.read_text() for name in kept)
