"""How long a call takes."""

import time

STRETCH = 0.05
REPEATS = 7


def timed(function, stretch: float = STRETCH, repeats: int = REPEATS, wait=lambda: None) -> float:
    """Seconds per call, the median of several stretches. What runs asynchronously is waited for at the end of each, by `wait`."""

    def spend(count):
        start = time.perf_counter()
        for _ in range(count):
            function()
        wait()
        return time.perf_counter() - start

    spend(1)
    count, spent = 1, spend(1)
    while spent <= stretch / 4 and count <= 10_000_000:
        count *= 4
        spent = spend(count)
    count = max(1, int(count * stretch / max(spent, 1e-9)))
    return sorted(spend(count) / count for _ in range(repeats))[repeats // 2]
