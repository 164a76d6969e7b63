"""`rustgrad.compiler.config`: the settings of PyTorch's caches of compiled code that programs assign to; plans are not kept there."""

__all__ = ["cache_key_tag", "job_id"]

cache_key_tag = ""
job_id = None


def __dir__() -> list[str]:
    return __all__
