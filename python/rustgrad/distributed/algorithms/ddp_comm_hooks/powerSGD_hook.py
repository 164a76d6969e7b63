"""Names that libraries import: gradients of low rank, which are not here."""

from ..._refusals import refusing_class, refusing_function

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_HINT = "use default_hooks.fp16_compress_hook or bf16_compress_hook, which send half the bytes."
PowerSGDState = refusing_class(__name__, "PowerSGDState", _HINT)
powerSGD_hook = refusing_function(__name__, "powerSGD_hook", _HINT)
batched_powerSGD_hook = refusing_function(__name__, "batched_powerSGD_hook", _HINT)
