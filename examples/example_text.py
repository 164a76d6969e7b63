"""A text that every Python has: what `help()` says about the language, some 400,000 characters of English."""

from __future__ import annotations

import re
from pydoc_data.topics import topics


def language_reference() -> str:
    """The topics of Python's help, one after another, without indentation."""
    text = "\n".join(topics.values())
    return re.sub(r" +", " ", "".join(c for c in text if c.isascii()))
