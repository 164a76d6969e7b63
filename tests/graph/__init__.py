"""Cases about the backward graph, by name. Each is a function of the module under test: see `support/recorded.py`."""

from . import anomaly, api, functions, hooks, inplace, memory, names, programs, refused, saved

CASES = {}
for module in (inplace, refused, names, saved, anomaly, hooks, functions, api, memory, programs):
    CASES |= {f"{module.__name__.rpartition('.')[2]}: {name}": case for name, case in module.CASES.items()}
