"""`multiprocessing.queues` under its name in PyTorch. Tensors cross in shared memory."""

from multiprocessing.queues import JoinableQueue as JoinableQueue
from multiprocessing.queues import Queue as Queue
from multiprocessing.queues import SimpleQueue as SimpleQueue

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]
