"""Records PyTorch's results for the tables of tests/support/tables.py, one JSON file for each.

    RUSTGRAD_TEST_MODULE=torch python tests/golden/record_tables.py      # with torch; `make golden` does it

A file holds {"words": [results], "rows": {row: "0 0 3 ..."}}: distinct results, and rows as indices into that list.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))


def main():
    from support.tables import answer
    from support.tables_of_shapes import TABLES
    from support.target import torch

    for name, (table, wording) in TABLES.items():
        words: dict[str, int] = {}
        rows = {
            row: " ".join(str(words.setdefault(answer(c, wording), len(words))) for c in cells)
            for row, cells in table()
        }
        lines = [f" {json.dumps(row)}: {json.dumps(places)}" for row, places in rows.items()]
        heard = ",\n ".join(json.dumps(w) for w in words)
        text = f'{{"torch": "{torch.__version__}", "words": [\n {heard}],\n"rows": {{\n' + ",\n".join(lines) + "}}\n"
        HERE.joinpath(f"table_{name}.json").write_text(text)
        print(f"{name}: {len(rows)} rows, {len(words)} different answers")


if __name__ == "__main__":
    main()
