"""Passes over graphs of ops of any kind."""

__all__: list[str] = []
