"""`rustgrad.utils.data.datapipes.utils`: files and functions of pipes, decoders of files, snapshots."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
