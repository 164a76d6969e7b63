"""Whole tables of behaviour against PyTorch's recorded answers: promotion, indexing, views, construction, limits.

The tables are in `support.tables` and `support.tables_of_shapes`. KNOWN lists what is different on purpose or not yet
the same; it is strict: an entry that excuses nothing fails. `complex32` does not exist here, so cells in which PyTorch
gives it are left out.
"""

import json
import re
from pathlib import Path

import pytest
from support.tables import answer
from support.tables_of_shapes import TABLES

GOLDEN = Path(__file__).parent / "golden"

# (table, pattern of the row, pattern of the answer here, why)
KNOWN: list[tuple[str, str, str, str]] = [
    ("promotion", "^sum out=", "output type Bool", "a sum into bool: PyTorch then sums in bool"),
    (
        "promotion",
        "^floor_divide_",
        "not implemented for 'Complex",
        "the operation is refused before the output's dtype",
    ),
    ("promotion", "^pow: b8", "not implemented for 'Bool'", "True ** True is not computed"),
    ("promotion", r"^result_type: b8\[2\], \[\]", "^u(16|32|64)$", "bool and a stored dtype: a higher category wins"),
    ("promotion", "^matmul", "expected m1 and m2 to have the same dtype", "dtypes by their names, not C++'s"),
    ("one_tensor", "^round$", "not supported for complex inputs", "another wording"),
    ("one_tensor", "^histc$", "not implemented for 'Complex", "NotImplementedError, as elsewhere"),
    ("one_tensor", "^logsumexp$", "not defined for complex", "not computed for complex numbers yet"),
    ("indexing", r"^0-d: x\[\['a'\]\]", "TypeError", "the text is refused before the dimensions are counted"),
    ("indexing", r"x\[False\]", "RuntimeError", "values of a wrong shape are refused though nothing is written"),
    ("views", r"^complex: x\.(H|mH|adjoint\(\)|conj\(\))$", "c64$", "conjugates are computed at once"),
    ("views", r"^empty: x\.rot90", "contiguous", "strides of an empty result"),
    ("views", r"^0-d: x\.adjoint\(\)", "shares", "a view of the tensor instead of itself"),
    ("views", r"^0-d: x\.unflatten", "shares", "a 0-d tensor counts as one of one element"),
]


def recorded(name):
    golden = json.loads((GOLDEN / f"table_{name}.json").read_text())
    return {row: [golden["words"][int(i)] for i in places.split()] for row, places in golden["rows"].items()}


def excuse(name, row, got):
    for i, (table, rows, answers, _) in enumerate(KNOWN):
        if table == name and re.search(rows, row) and re.search(answers, got):
            return i
    return None


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore")
def test_table(torch, name):
    table, wording = TABLES[name]
    golden, problems, excused, cells = recorded(name), [], set(), 0
    for row, thunks in table():
        for i, (thunk, want) in enumerate(zip(thunks, golden.pop(row), strict=True)):
            cells += 1
            got = answer(thunk, wording)
            if got == want or re.search("c32|complex32|ComplexHalf|BComplex32", want):
                continue
            known = excuse(name, row, got)
            excused.add(known)
            if known is None:
                problems.append(f"{row} #{i}: {got} is not {want}")
    idle = [k[1:] for i, k in enumerate(KNOWN) if k[0] == name and i not in excused]
    assert not golden, f"rows that the table no longer has: {list(golden)[:3]}"
    assert not problems, f"{len(problems)} of {cells} cells differ:\n" + "\n".join(problems[:40])
    assert not idle, f"known differences that are none: {idle}"
