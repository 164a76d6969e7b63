"""How long a call takes."""

import time

STRETCH = 0.05
REPEATS = 7


def timed(function, stretch: float = STRETCH, repeats: int = REPEATS) -> float:
    """Seconds per call, the median of several stretches."""
    function()
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            function()
        spent = time.perf_counter() - start
        if spent > stretch / 4 or count > 10_000_000:
            break
        count *= 4
    count = max(1, int(count * stretch / max(spent, 1e-9)))
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            function()
        found.append((time.perf_counter() - start) / count)
    return sorted(found)[repeats // 2]
