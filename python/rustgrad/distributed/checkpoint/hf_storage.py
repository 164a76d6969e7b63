"""Names that libraries import: files of `safetensors` for models in pieces, of which there are none here."""

from ..._absent import getattr_of
from .._refusals import refusing_class

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_HINT = "rank 0 saves the state dict."
HuggingFaceStorageReader = refusing_class(__name__, "HuggingFaceStorageReader", _HINT)
HuggingFaceStorageWriter = refusing_class(__name__, "HuggingFaceStorageWriter", _HINT)
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
