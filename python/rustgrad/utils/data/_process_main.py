"""The program of a worker process of a `DataLoader`."""

from __future__ import annotations

import os
import queue
import random
import sys
import threading
from typing import Any

from ... import _C
from ..._utils import ExceptionWrapper
from ._channel import Channel
from ._pipes import apply_shared_seed
from ._processes import STATUS_INTERVAL, Ended, Setup
from ._worker import WorkerInfo, set_sends, set_worker_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def work(number: int, setup: Setup, connection: Connection, others: list[Channel]) -> None:
    """Serves requests until the loader ends or asks to end."""
    for channel in others:
        channel.close()
    channel = Channel(connection)
    _C.set_num_threads(1)
    set_sends()
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(channel, inbox, setup.parent), daemon=True).start()
    try:
        _serve(number, setup, channel, inbox)
    except (BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        pass  # The loader has ended, or will raise KeyboardInterrupt itself.


def _listen(channel, inbox, parent):
    """Takes requests off the connection, so that the loader never waits for a worker that is busy."""
    try:
        while True:
            while not channel.connection.poll(STATUS_INTERVAL):
                if parent is not None and os.getppid() != parent:
                    os._exit(1)
            message = channel.receive_request()
            inbox.put(message)
            if message is None:
                return
    except (EOFError, OSError):
        # The loader was killed: nobody waits for what this process computes.
        os._exit(1)
    except BaseException as error:
        inbox.put(error)


def _generate_state(base_seed, worker_id):
    """Four numbers of 32 bits, different for each worker, as a seed for NumPy."""
    import numpy

    words = (worker_id, base_seed & 0xFFFFFFFF, (base_seed >> 32) & 0xFFFFFFFF, 0)
    return [int(word) for word in numpy.random.SeedSequence(words).generate_state(4)]


def _seed(number, base):
    """Seeds the generators of Python, rustgrad and, if it is loaded, NumPy; each worker has its own numbers."""
    seed = (base + number) % (1 << 64)
    random.seed(seed)
    _C.manual_seed(seed)
    if "numpy" in sys.modules:
        import numpy

        numpy.random.seed(_generate_state(base, number))
    return seed


def _serve(number, setup, channel, inbox):
    where = f"in DataLoader worker process {number}"
    fetch = failure = None
    started = False
    while (message := inbox.get()) is not None:
        if isinstance(message, BaseException):
            raise message
        kind, turn, content = message
        if kind == "pass":
            base, shared_seed = content
            try:
                if shared_seed is not None:
                    apply_shared_seed(setup.dataset, shared_seed)
                if not started:
                    seed = _seed(number, base)
                    set_worker_info(WorkerInfo(number, setup.num_workers, seed, setup.dataset))
                    started = True
                    if setup.init_fn is not None:
                        setup.init_fn(number)
                fetch, failure = setup.make_fetch(setup.dataset), None
            except Exception:
                failure = ExceptionWrapper(where=where)
            continue
        _answer(channel, turn, failure or _result(fetch, content, where, setup.make_fetch.of_stream), where)


def _result(fetch, request, where, of_stream):
    try:
        return fetch(request)
    except Exception as error:
        return Ended() if of_stream and isinstance(error, StopIteration) else ExceptionWrapper(where=where)


def _answer(channel, turn, answer, where):
    try:
        channel.send((turn, answer))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception:
        # What cannot be pickled, or memory that cannot be had, is an error of this batch.
        channel.send((turn, ExceptionWrapper(where=where)))
