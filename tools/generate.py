"""Writes what is derived: docs/ops.md, the type stubs, the list of absent names in docs/. `--check` only compares.

    python tools/generate.py [--check]      # with rustgrad installed; `make docs` does it

Nothing here knows an op by name. The stubs are made in `stubs.py`.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import rustgrad
from rustgrad import _C
from stubs import all_stubs

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "rustgrad"


# Kinds of primitives: what is no primitive decomposes. See docs/decisions/kinds-of-ops.md.
KINDS = ("elementwise", "kernel", "view", "opaque", "reads host")


def ops_page(table: list[dict]) -> str:
    """The table of operators: those with a public name, then the steps that they are made of."""
    public, steps = ([r for r in table if r["hidden"] is hidden] for hidden in (False, True))
    kinds = Counter(r["kind"] for r in table)
    lines = [
        "# Operators", "",
        "Generated from the op table by `make docs`; do not edit. One row is one declaration in `src/ops/`.", "",
        f"- {len(public)} declarations under {len({r['public'] for r in public})} public names, and {len(steps)} steps of others",
        f"- {sum(r['differentiable'] for r in table)} differentiable, to any order",
        f"- {sum(r['gpu'] for r in table)} run on the GPU device",
        f"- {len(table) - kinds['composite']} primitives ({', '.join(f'{kinds[k]} {k}' for k in KINDS)}); the other"
        f" {kinds['composite']} decompose into them, {sum(bool(r['fused']) for r in table)} of those with a fused kernel", "",
        *rows(public), "",
        "## Steps", "",
        "Not functions of the package: what the operators above are composed of, and their gradients. Their names may change.", "",
        *rows(steps),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def rows(table: list[dict]) -> list[str]:
    def yes(flag):
        return "yes" if flag else ""

    lines = [
        "| operator | signature | kind | method | in place | out= | gradient | GPU | what it computes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(table, key=lambda r: r["name"]):
        kind = row["kind"] + (" + fused" if row["fused"] else "")
        gradient = "yes" if row["differentiable"] else row["no_grad_reason"] or "no"
        doc = (row["doc"] or "").strip().split("\n")[0].replace("|", "\\|")
        signature = row["signature"].split("(", 1)[1].replace("|", "\\|")
        gpu = "yes" if row["gpu"] else "no shader"
        marks = " | ".join([yes(row["method"]), yes(row["inplace"]), yes(row["out"])])
        lines.append(f"| `{row['name']}` | `({signature}` | {kind} | {marks} | {gradient} | {gpu} | {doc} |")
    return lines


def absent_names() -> str:
    """The page for PyTorch's users with the list of names that are not here, by namespace."""
    page = ROOT / "docs" / "coming_from_pytorch.md"
    head, mark, _ = page.read_text().partition("do not edit below -->\n")
    golden = json.loads((ROOT / "tests" / "golden" / "names.json").read_text())
    lines = [f"Public names of PyTorch {golden['version'].split('+')[0]}, by namespace, that are not here:", ""]
    for space, names in golden["names"].items():
        home = find(space)
        missing = [n for n in names.split() if not hasattr(home, n)] if home else []
        title = "torch" if space == "torch" else f"torch.{space}"
        if missing or not home:
            count = f"{len(missing)} of {len(names.split())}" if home else "all"
            lines += [f"- `{title}` ({count})" + (": " + " ".join(f"`{n}`" for n in missing) if missing else "")]
    return head + mark + "\n" + "\n".join(lines) + "\n"


def find(space: str):
    """The namespace of ours, None where it is absent."""
    found = rustgrad
    for part in [] if space == "torch" else space.split("."):
        found = getattr(found, part, None)
    return found


def main():
    table = _C.op_table()
    files = {
        ROOT / "docs" / "ops.md": ops_page(table),
        ROOT / "docs" / "coming_from_pytorch.md": absent_names(),
        **{PACKAGE / path: text for path, text in all_stubs().items()},
    }
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        names = ", ".join(str(p.relative_to(ROOT)) for p in stale)
        sys.exit(f"out of date: {names}; run `make docs`" if stale else 0)
    for path in stale:
        path.write_text(files[path])
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
