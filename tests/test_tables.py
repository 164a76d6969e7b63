"""Tables of behaviour against PyTorch's recorded results: promotion, indexing, views, construction, limits.

The tables are in `support.tables` and `support.tables_of_shapes`. KNOWN lists intended differences and those not yet
resolved; it is strict: an unused entry fails. Cells with `bcomplex32`, which does not exist here, and with ops of `complex32` that
PyTorch has not are skipped.
"""

import json
import re
from pathlib import Path

import pytest
from support.tables import answer
from support.tables_of_shapes import TABLES

GOLDEN = Path(__file__).parent / "golden"

# (table, pattern of the row, pattern of the result here, reason)
KNOWN: list[tuple[str, str, str, str]] = [
    ("promotion", r"^result_type: b8\[2\], \[\]", "^u(16|32|64)$", "bool and a stored dtype: a higher category wins"),
    ("promotion", "^matmul", "expected m1 and m2 to have the same dtype", "the same words, and a hint"),
    ("one_tensor", "^round$", "not supported for complex inputs", "another wording"),
    ("one_tensor", "^histc$", "not implemented for 'Complex", "NotImplementedError, as elsewhere"),
    ("construction", r"T\(|np\.", "^[a-z]+[0-9]+ ", "numbers in tensors and arrays are converted as Python's are"),
    ("construction", r"2\*\*6[34]|10\*\*30", "ValueError|OverflowError", "beyond 64 bits: refused for every dtype"),
    ("construction", "^tensor", "^u64 ", "uint64 takes floats and negative numbers as other dtypes do"),
    (
        "construction",
        r"T\(|np\.",
        "^(Type|Value|Runtime)Error$",
        "another class where both refuse, or a LongTensor of a tensor",
    ),
    ("construction", r"^other makers of 2\*\*63$", "^u64", "an integer beyond int64 gives uint64"),
    ("construction", "nan|inf|1e400", "RuntimeError", "uint64 refuses them as other dtypes do"),
    ("indexing", r"^0-d: x\[(\['a'\]|'a')\]", "TypeError", "the text is refused before the dimensions are counted"),
    ("views", r"^complex: x\.(H|mH|adjoint\(\)|conj\(\))$", "c64$", "conjugates are computed at once"),
    ("views", r"^0-d: x\.adjoint\(\)", "shares", "a view of the tensor instead of itself"),
    ("views", r"^0-d: x\.unflatten", "shares", "a 0-d tensor counts as one of one element"),
]


ELSEWHERE = re.compile("(?i)bcomplex32|not implemented for 'ComplexHalf'")


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
            if got == want or ELSEWHERE.search(want):
                continue
            known = excuse(name, row, got)
            excused.add(known)
            if known is None:
                problems.append(f"{row} #{i}: {got} is not {want}")
    idle = [k[1:] for i, k in enumerate(KNOWN) if k[0] == name and i not in excused]
    assert not golden, f"rows that the table no longer has: {list(golden)[:3]}"
    assert not problems, f"{len(problems)} of {cells} cells differ:\n" + "\n".join(problems[:40])
    assert not idle, f"known differences that are none: {idle}"
