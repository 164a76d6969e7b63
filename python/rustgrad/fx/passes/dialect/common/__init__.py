"""Passes over graphs of ops of any kind."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
