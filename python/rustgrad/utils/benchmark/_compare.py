"""`Compare`: measurements as a table, a row for each sub-label and a column for each description."""

from __future__ import annotations

from ._timer import Measurement, select_unit

__all__ = ["Compare"]


class Compare:
    """Measurements as a table.

    Args:
        results (list of Measurement): their `label` chooses the table, `sub_label` and `num_threads` the row, and
            `description` the column.
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = self._highlight = False
        self.extend_results(results)

    def extend_results(self, results: list[Measurement]) -> None:
        """Adds measurements."""
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Shows only digits that are certain."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Marks the best time of each row with an asterisk; there are no colours."""
        self._highlight = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        labels = list(dict.fromkeys(r.label for r in self._results))
        return "\n".join(self._table(label, [r for r in self._results if r.label == label]) for label in labels)

    def _table(self, label, results):
        merged = Measurement.merge(results)
        columns = list(dict.fromkeys(r.description for r in merged))
        rows = list(dict.fromkeys((r.num_threads, r.as_row_name) for r in merged))
        unit, size = select_unit(min(r.median for r in merged))
        cells = {((r.num_threads, r.as_row_name), r.description): r for r in merged}
        lines = [["", *(str(c or "") for c in columns)]]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                lines.append([f"{threads} threads:" if threads > 1 else "1 thread:", *("" for _ in columns)])
            found = [cells.get((row, c)) for c in columns]
            best = min(r.median for r in found if r is not None)
            lines.append([f"  {row[1]}", *(self._cell(r, size, best) for r in found)])
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        texts = [
            " | ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
            for line in lines
        ]
        title = f"[{label}]" if label else "[benchmark]"
        return "\n".join([title.center(len(texts[0]), "-"), *texts, "", f"Times are in {_LONG[unit]} ({unit})."])

    def _cell(self, r, size, best):
        if r is None:
            return ""
        value = r.median / size
        text = f"{float(f'{value:.{r.significant_figures}g}'):g}" if self._trim else f"{value:.1f}"
        return f"*{text}" if self._highlight and r.median == best else text


_LONG = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
