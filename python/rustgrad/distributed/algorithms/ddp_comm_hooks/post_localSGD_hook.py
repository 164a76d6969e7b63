"""Names that libraries import: averages of models in place of gradients, which are not here."""

from ..._refusals import refusing_class, refusing_function

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]

_HINT = "use default_hooks.allreduce_hook."
PostLocalSGDState = refusing_class(__name__, "PostLocalSGDState", _HINT)
post_localSGD_hook = refusing_function(__name__, "post_localSGD_hook", _HINT)
