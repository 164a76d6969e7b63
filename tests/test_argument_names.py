"""Every name by which an op reads an argument is one of its signature's (docs/adding_an_op.md, *What bodies and formulas offer*)."""

from functools import cache
from pathlib import Path

from support.op_source import Source

ROOT = Path(__file__).resolve().parent.parent
# The operand itself: the first argument, whose name differs in functions that many ops share.
OPERAND = {"self", "input"}


@cache
def source() -> Source:
    return Source(ROOT)


def test_every_name_is_in_the_signatures_of_the_ops_that_read_it():
    found, wrong = 0, []
    for place, name in source().arguments():
        readers = source().readers(place)
        lacking = sorted(str(op) for op, names in readers.items() if name not in names)
        found += 1
        if lacking or not readers:
            wrong.append(f"{place}: '{name}' is no parameter of {', '.join(lacking) or 'any op that is found'}")
    assert not wrong, "\n".join(wrong)
    assert found > 1500, f"{found} names are found"


def test_a_position_stands_only_for_the_operand_or_where_names_differ():
    wrong = []
    for place, i in source().positions():
        names = {n[i] if i < len(n) else None for n in source().readers(place).values()}
        if len(names) == 1 and not (i == 0 and names <= OPERAND):
            wrong.append(f"{place}: all ops that read it call it {names}")
    assert not wrong, "\n".join(wrong)


def test_all_ops_are_found():
    assert len(source().ops) > 900
    assert all(op.file.text.count(f"&{op.name}") for op in source().ops)
