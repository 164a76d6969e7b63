"""Where PyTorch keeps the classes of scripted modules and functions."""

from __future__ import annotations

from . import Attribute, ScriptFunction, ScriptModule, interface, script, script_method

__all__ = [
    "Attribute",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "interface",
    "script",
    "script_method",
]


class RecursiveScriptModule(ScriptModule):
    """The class of what `script` makes of a module, of which there are no objects: it returns the module itself."""
