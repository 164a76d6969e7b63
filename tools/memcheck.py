"""Runs pytest under valgrind's memcheck and tells of the errors in whose stack this package stands.

CPython and NumPy read what memcheck cannot follow; without a frame of ours such an error says nothing about us.
Usage: memcheck.py DIRECTORY-WITH-THE-PACKAGE TEST...
"""

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

OURS = "rustgrad"


def main(site, tests):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "memcheck.xml"
        valgrind = [
            "valgrind",
            "--tool=memcheck",
            "--xml=yes",
            f"--xml-file={report}",
            "--num-callers=30",
            "--error-limit=no",
        ]
        environment = {**os.environ, "PYTHONPATH": site, "PYTHONMALLOC": "malloc", "RUSTGRAD_NUM_THREADS": "2"}
        command = [*valgrind, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *tests]
        code = subprocess.run(command, env=environment, check=False).returncode
        errors = [e for e in ET.parse(report).getroot().iter("error") if ours(e)]
    for error in errors:
        print(f"memcheck: {error.findtext('kind')}: {text(error)}")
        for frame in error.iter("frame"):
            print(
                f"    {frame.findtext('fn') or '?'} ({frame.findtext('file') or '?'}:{frame.findtext('line') or '?'})"
            )
    print(f"memcheck: {len(errors)} errors with a frame of {OURS}; pytest ended with {code}")
    return code or bool(errors)


def ours(error):
    """Whether this package read, wrote or freed wrongly. What is never freed is for the tests of lifetimes."""
    places = (f"{f.findtext('obj')} {f.findtext('fn')}" for f in error.iter("frame"))
    return not (error.findtext("kind") or "").startswith("Leak_") and any(OURS in place for place in places)


def text(error):
    return error.findtext("what") or error.findtext("xwhat/text") or ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
