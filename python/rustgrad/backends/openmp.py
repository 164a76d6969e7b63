"""OpenMP, which is not used: ops have a thread pool of their own (`rustgrad.set_num_threads`)."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False: OpenMP is not used."""
    return False
