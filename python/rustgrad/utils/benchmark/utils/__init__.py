"""Where PyTorch keeps the classes of `utils.benchmark`: `common`, `compare` and `timer`."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
