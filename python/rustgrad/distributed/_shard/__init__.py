"""Names that libraries import of PyTorch's tensors in pieces over processes, of which there are none here."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
