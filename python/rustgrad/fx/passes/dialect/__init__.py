"""`rustgrad.fx.passes.dialect`: passes over graphs of ops."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
