"""Messages of `send` and `recv`: one thread of a group moves them over its connections for messages.

A message is a header (tag, number of bytes) and its bytes. One that nobody waits for yet is kept until a `recv` of its tag
comes; other messages overtake it. Bytes go from and to the memory of tensors.
"""

from __future__ import annotations

import collections
import contextlib
import os
import selectors
import socket
import struct
import threading
import time

from .errors import DistBackendError
from .work import Work

__all__ = ["ANY", "Messages"]

ANY = -1
_HEADER = struct.Struct("<qQ")


class _Peer:
    """What is on its way to and from a process."""

    def __init__(self, rank: int, sock: socket.socket) -> None:
        self.rank, self.sock = rank, sock
        # The parts that are left of each message, its work, and until when it may take.
        self.outgoing: collections.deque[tuple[list[memoryview], Work, float]] = collections.deque()
        self.kept: list[tuple[int, bytearray]] = []
        self.error: BaseException | None = None
        self.is_watched = False
        self.begin()

    def begin(self) -> None:
        """Expects a header next."""
        self.header = bytearray(_HEADER.size)
        self.rest, self.wanted = memoryview(self.header), None
        self.tag, self.body = 0, None


class _Wanted:
    """A `recv` that waits for its message."""

    def __init__(self, rank: int, tag: int, view: memoryview, work: Work, end: float) -> None:
        self.rank, self.tag, self.view, self.work, self.end = rank, tag, view, work, end

    def matches(self, rank: int, tag: int) -> bool:
        return self.tag == tag and self.rank in (rank, ANY)


class Messages:
    """The messages of a group.

    Args:
        sockets (dict): the connections, by rank.
        timeout (float): seconds that a message may take.
    """

    def __init__(self, sockets: dict[int, socket.socket], timeout: float) -> None:
        self._timeout = timeout
        self._peers = {rank: _Peer(rank, sock) for rank, sock in sockets.items()}
        self._wanted: list[_Wanted] = []
        self._lock = threading.RLock()  # A future's callback may send.
        self._thread: threading.Thread | None = None
        self._ended = False
        self._bell, self._ring = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._ring, False)

    def send(self, rank: int, tag: int, view: memoryview, work: Work) -> None:
        """Sends bytes; the work is done when they are with the system."""
        peer = self._peers[rank]
        header = memoryview(_HEADER.pack(tag, len(view)))
        with self._lock:
            if peer.error is not None:
                return work.finish(peer.error)
            end = time.monotonic() + self._timeout
            peer.outgoing.append(([header, view] if len(view) else [header], work, end))
            if len(peer.outgoing) == 1:
                self._flush(peer)
            if peer.outgoing:
                self._call()
        return None

    def receive(self, rank: int, tag: int, view: memoryview, work: Work) -> None:
        """Waits for bytes of a process, or of `ANY`, into a view."""
        with self._lock:
            wanted = _Wanted(rank, tag, view, work, time.monotonic() + self._timeout)
            peers = list(self._peers.values()) if rank == ANY else [self._peers[rank]]
            for peer in peers:
                for kept in peer.kept:
                    if kept[0] == tag:
                        peer.kept.remove(kept)
                        return self._deliver(wanted, peer.rank, kept[1])
            errors = [peer.error for peer in peers if peer.error is not None]
            if len(errors) == len(peers):
                return work.finish(errors[0])
            self._wanted.append(wanted)
            self._call()
        return None

    def _call(self):
        """Wakes the thread, or starts it."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="rustgrad-messages", daemon=True)
            self._thread.start()
        with contextlib.suppress(OSError):
            os.write(self._ring, b"!")

    def _deliver(self, wanted, rank, data):
        """A message that was kept, or that has come, to whom it is for."""
        wanted.work._source = rank
        if len(data) != len(wanted.view):
            return wanted.work.finish(
                RuntimeError(f"recv: rank {rank} of the group sent {len(data)} bytes; expected {len(wanted.view)}")
            )
        if data is not wanted.view:
            wanted.view[:] = data
        return wanted.work.finish()

    def _loop(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self._bell, selectors.EVENT_READ)
            while not self._ended:
                with self._lock:
                    self._watch(selector)
                    ends = [wanted.end for wanted in self._wanted]
                    ends += [end for peer in self._peers.values() for end in self._ends(peer)]
                ready = selector.select(max(0.0, min(ends) - time.monotonic()) if ends else None)
                with self._lock:
                    self._serve(ready)

    def _watch(self, selector):
        """Watches the connections of live processes."""
        for peer in self._peers.values():
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.outgoing else 0)
            if peer.error is not None:
                if peer.is_watched:
                    selector.unregister(peer.sock)
                    peer.is_watched = False
            elif peer.is_watched:
                selector.modify(peer.sock, events, peer)
            else:
                selector.register(peer.sock, events, peer)
                peer.is_watched = True

    def _serve(self, ready):
        for key, events in ready:
            peer = key.data
            if peer is None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._bell, 4096)
                continue
            if events & selectors.EVENT_WRITE:
                self._flush(peer)
            if events & selectors.EVENT_READ and peer.error is None:
                self._take(peer)
        now, limit = time.monotonic(), f"Timed out waiting {round(self._timeout * 1000)}ms"
        for peer in self._peers.values():
            if any(end <= now for end in self._ends(peer)):  # In the middle of a message: nothing can follow it.
                self._fail(peer, TimeoutError(limit))
        for wanted in [wanted for wanted in self._wanted if wanted.end <= now]:
            self._wanted.remove(wanted)
            wanted.work.finish(DistBackendError(f"recv: {limit} for a message"))

    @staticmethod
    def _ends(peer):
        """Until when the messages that have begun may take."""
        return [*([peer.outgoing[0][2]] if peer.outgoing else []), *([peer.wanted.end] if peer.wanted else [])]

    def _flush(self, peer):
        try:
            while peer.outgoing:
                parts, work, _ = peer.outgoing[0]
                sent = peer.sock.sendmsg(parts)
                while parts and sent >= len(parts[0]):
                    sent -= len(parts.pop(0))
                if parts:
                    parts[0] = parts[0][sent:]
                else:
                    peer.outgoing.popleft()
                    work.finish()
        except BlockingIOError:
            pass
        except OSError as error:
            self._fail(peer, error)

    def _take(self, peer):
        try:
            while True:
                got = peer.sock.recv_into(peer.rest)
                if not got:
                    return self._fail(peer, None)
                peer.rest = peer.rest[got:]
                while not len(peer.rest):
                    if peer.body is None:
                        self._headed(peer)
                    else:
                        self._arrived(peer)
        except BlockingIOError:
            return None
        except OSError as error:
            return self._fail(peer, error)

    def _headed(self, peer):
        """A header has come: the bytes behind it go to whom they are for, or are kept."""
        peer.tag, nbytes = _HEADER.unpack(peer.header)
        peer.wanted = next((w for w in self._wanted if w.matches(peer.rank, peer.tag)), None)
        if peer.wanted is not None:
            self._wanted.remove(peer.wanted)
        fits = peer.wanted is not None and len(peer.wanted.view) == nbytes
        peer.body = peer.wanted.view if fits else bytearray(nbytes)
        peer.rest = memoryview(peer.body)
        if not nbytes:
            self._arrived(peer)

    def _arrived(self, peer):
        wanted = peer.wanted
        if wanted is None:
            wanted = next((w for w in self._wanted if w.matches(peer.rank, peer.tag)), None)
            if wanted is not None:
                self._wanted.remove(wanted)
        if wanted is None:
            peer.kept.append((peer.tag, peer.body))
        else:
            self._deliver(wanted, peer.rank, peer.body)
        peer.begin()

    def _fail(self, peer, error):
        """The connection to a process has ended: so has what waits for it alone."""
        text = "has ended or has failed" if error is None else f"cannot be reached any more: {error}"
        peer.error = DistBackendError(f"Connection closed by peer: rank {peer.rank} {text}")
        lost = [work for _, work, _ in peer.outgoing]
        peer.outgoing.clear()
        if peer.wanted is not None:
            lost.append(peer.wanted.work)
            peer.wanted = None
        alone = all(other.error is not None for other in self._peers.values())
        for wanted in [w for w in self._wanted if w.rank == peer.rank or alone]:
            self._wanted.remove(wanted)
            lost.append(wanted.work)
        for work in lost:
            work.finish(peer.error)

    def close(self) -> None:
        """Ends the thread and the connections, after what is to be sent has been sent or a second has passed."""
        end = time.monotonic() + 1
        while time.monotonic() < end and any(p.outgoing and p.error is None for p in self._peers.values()):
            time.sleep(0.01)
        self._ended = True
        with contextlib.suppress(OSError):
            os.write(self._ring, b"!")
        if self._thread is not None:
            self._thread.join(5)
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.sock.shutdown(socket.SHUT_RDWR)
            peer.sock.close()
        for wanted in self._wanted:
            wanted.work.finish(DistBackendError("the process group has been destroyed"))
        os.close(self._bell)
        os.close(self._ring)
