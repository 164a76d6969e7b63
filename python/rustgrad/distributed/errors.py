"""The errors of process groups and stores; all are RuntimeErrors."""

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistQueueEmptyError", "DistStoreError"]


class DistError(RuntimeError):
    """An error of communication between processes."""


class DistBackendError(DistError):
    """A process group cannot communicate any more."""


class DistNetworkError(DistError):
    """A connection cannot be made, or has broken."""


class DistStoreError(DistError):
    """A store does not have a key in time."""


class DistQueueEmptyError(DistStoreError):
    """A queue of a store is empty."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, DistQueueEmptyError):
    _error.__module__ = "torch.distributed"
