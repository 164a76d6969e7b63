"""`rustgrad.fx.passes.dialect`: passes over graphs of ops."""

__all__: list[str] = []
