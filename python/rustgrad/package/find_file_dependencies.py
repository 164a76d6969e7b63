"""The modules that a source imports, by its text."""

from __future__ import annotations

import ast
from importlib.util import resolve_name
from typing import Any

__all__ = ["find_files_source_depends_on"]


def find_files_source_depends_on(src: str, package: str) -> list[tuple[str, str | None]]:
    """Pairs (module, name imported from it or None) of `import`, `from` and `__import__` with constant arguments.

    Args:
        src (str): Python code.
        package (str): what relative imports in it start from.
    """
    found: dict[tuple[str, str | None], None] = {}
    for node in ast.walk(ast.parse(src)):
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys((alias.name, None) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            found.update(dict.fromkeys((module, None if a.name == "*" else a.name) for a in node.names))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
            found.update(dict.fromkeys(_called(node, package)))
    return list(found)


def _called(node: ast.Call, package: str) -> list[tuple[str, str | None]]:
    """The modules of a call of `__import__`; none if its arguments are computed."""
    given: dict[str | None, Any] = dict(zip(("name", "globals", "locals", "fromlist", "level"), node.args))
    given.update((k.arg, k.value) for k in node.keywords)
    try:
        name, names, level = (
            ast.literal_eval(given[k]) if k in given else default
            for k, default in (("name", ""), ("fromlist", ()), ("level", 0))
        )
        module = resolve_name("." * level + name, package)
    except (ValueError, TypeError, ImportError):
        return []
    if not names:
        # Without names the top package is what the call returns.
        return [(module, None), *([(module.rpartition(".")[0], None)] if "." in module else [])]
    return [(module, None if n == "*" else n) for n in names]
