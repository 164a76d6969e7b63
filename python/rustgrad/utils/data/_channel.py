"""Batches on their way from a worker process to the loader: a pickle, and the memory of its tensors.

A small batch is one message. The tensors of a larger one, and its pickle, lie in one block of shared memory, whose
descriptor follows the message: the loader maps the block and copies nothing.
"""

from __future__ import annotations

import io
import os
import pickle
import socket
import struct
import threading
from multiprocessing import reduction
from typing import Any

from ... import _C
from ..._C import Tensor
from ...multiprocessing.reductions import check_leaf
from ...storage import UntypedStorage, storage_of
from ._worker import SHARED_FROM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_ALIGN = 64
# In shared memory; bytes of the pickle; number of storages.
_HEAD = struct.Struct("<?QI")
# Start, bytes; in shared memory of its own.
_ROW = struct.Struct("<QQ?")
# The most descriptors that a message has room for is 253.
_MOST_DIRECT = 200
# The storages of the message that this thread is unpickling.
_arrived = threading.local()


class _Pickler(reduction.ForkingPickler):
    """Writes the storages of CPU tensors as numbers, and collects them."""

    def __init__(self, file):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.storages, self.numbers, self.kept = [], {}, []

    def reducer_override(self, obj):
        if isinstance(obj, Tensor):
            check_leaf(obj)
            if obj.is_cpu and type(obj).__reduce_ex__ is Tensor.__reduce_ex__:
                if _C._storage_info(obj)[1] > obj.numel() * obj.itemsize and not obj.requires_grad:
                    # A row of a large tensor: its own elements, not the whole of its memory.
                    obj = obj.clone()
                    self.kept.append(obj)
                return obj.__reduce_ex__(4)
        elif type(obj) is UntypedStorage and obj._tensor.is_cpu:
            number = self.numbers.get(obj)
            if number is None:
                number = self.numbers[obj] = len(self.storages)
                self.storages.append(obj)
            return _stored, (number,)
        return NotImplemented


def _stored(number):
    return _arrived.storages[number]


def _sorted_by_place(storages):
    """The places of storages that are shared memory by themselves, by storage; and the others."""
    direct, packed = {}, []
    for storage in storages:
        place = _C._shared_place(storage._tensor)
        if (
            place is not None
            and place[0] is not None
            and place[1:3] == (storage.nbytes(), 0)
            and len(direct) < _MOST_DIRECT
        ):
            direct[storage] = place
        else:
            packed.append(storage)
    return direct, packed


def _storage_from(data):
    return storage_of(_C._from_storage_bytes(bytes(data), _C.uint8))


class Channel:
    """One end of a connection between a loader and one of its workers.

    Args:
        connection (Connection): of `multiprocessing.Pipe(duplex=True)`.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._socket: socket.socket | None = None

    def fileno(self) -> int:
        """For `multiprocessing.connection.wait`."""
        return self.connection.fileno()

    def close(self) -> None:
        """Closes this end; the other one then reads the end of the stream."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self.connection.close()

    def _descriptors(self):
        if self._socket is None:
            self._socket = socket.socket(fileno=os.dup(self.connection.fileno()))
        return self._socket

    def send(self, obj: Any) -> None:
        """Sends a message. Whatever cannot be pickled raises before anything is sent."""
        file = io.BytesIO()
        pickler = _Pickler(file)
        pickler.dump(obj)
        text = file.getbuffer()
        direct, packed = _sorted_by_place(pickler.storages)
        at, starts = -(-len(text) // _ALIGN) * _ALIGN, {}
        for storage in packed:
            starts[storage] = at
            at += -(-storage.nbytes() // _ALIGN) * _ALIGN
        table = [_ROW.pack(starts.get(s, 0), s.nbytes(), s in direct) for s in pickler.storages]
        if (at <= SHARED_FROM and not direct) or os.name == "nt":
            parts = [_HEAD.pack(False, len(text), len(table)), *table, bytes(text), bytes(-len(text) % _ALIGN)]
            for storage in packed:
                parts += [_C._storage_bytes(storage._tensor), bytes(-storage.nbytes() % _ALIGN)]
            self.connection.send_bytes(b"".join(parts))
            return
        block = _C._shared_empty(at)
        block[: len(text)].copy_(_C.frombuffer(text, dtype=_C.uint8))
        for storage in packed:
            if size := storage.nbytes():
                block[starts[storage] : starts[storage] + size].copy_(storage._bytes)
        self.connection.send_bytes(_HEAD.pack(True, len(text), len(table)) + b"".join(table))
        places = [_C._shared_place(block), *direct.values()]
        reduction.sendfds(self._descriptors(), [place[0] for place in places])

    def receive_request(self) -> Any:
        """The next message; None if the other end asks to end."""
        message = self.connection.recv_bytes()
        return self._read(message) if message else None

    def receive(self) -> Any:
        """The next message. EOFError: the other end is closed."""
        return self._read(self.connection.recv_bytes())

    def _read(self, message):
        shared, length, count = _HEAD.unpack_from(message)
        rows = [_ROW.unpack_from(message, _HEAD.size + _ROW.size * i) for i in range(count)]
        if shared:
            return self._load(*self._map(length, rows))
        data = memoryview(message)[_HEAD.size + _ROW.size * count :]
        storages = [_storage_from(data[start : start + size]) for start, size, _ in rows]
        return self._load(data[:length], storages)

    def _map(self, length, rows):
        direct = sum(is_direct for _, _, is_direct in rows)
        descriptors = reduction.recvfds(self._descriptors(), 1 + direct)
        try:
            total = max([length, *(start + size for start, size, is_direct in rows if not is_direct)])
            block = _C._shared_open(descriptors[0], total, False)
            rest = iter(descriptors[1:])
            made = [
                _C._shared_open(next(rest), size, False) if is_direct else _C._storage_slice(block, start, start + size)
                for start, size, is_direct in rows
            ]
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return _C._storage_bytes(block[:length].clone()), [storage_of(t) for t in made]

    @staticmethod
    def _load(text, storages):
        _arrived.storages = storages
        try:
            return pickle.loads(text)
        finally:
            del _arrived.storages
