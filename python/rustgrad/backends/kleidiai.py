"""KleidiAI, which is not used."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False: KleidiAI is not used."""
    return False
