"""What PyTorch builds on process groups: recomputed activations (`_checkpoint`), uneven inputs (`join`)."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
