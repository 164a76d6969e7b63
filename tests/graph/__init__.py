"""Cases about the backward graph, by name. Each is a function of the module under test: see `support/recorded.py`."""

from . import anomaly, api, functions, hook_order, hooks, inplace, invalid, memory, names, programs, refused, saved

CASES = {}
for module in (
    inplace,
    refused,
    invalid,
    names,
    saved,
    anomaly,
    hooks,
    hook_order,
    functions,
    api,
    memory,
    programs,
):
    CASES |= {f"{module.__name__.rpartition('.')[2]}: {name}": case for name, case in module.CASES.items()}
