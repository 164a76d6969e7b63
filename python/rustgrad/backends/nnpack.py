"""NNPACK, which is not used."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False: NNPACK is not used."""
    return False
