"""Names that libraries import: averages of models in place of gradients, which are not here."""

from . import averagers as averagers

__all__ = ["averagers"]


def __dir__() -> list[str]:
    return __all__
