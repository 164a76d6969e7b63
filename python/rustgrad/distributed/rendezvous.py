"""How processes find each other: `rendezvous(url)` gives a store, this process's rank and the number of processes.

`env://` reads the environment variables that `torchrun` sets, `tcp://host:port` names the machine of rank 0, and
`file:///path` a file that all processes can open. Programs may register other schemes.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from .stores import _DEFAULT_TIMEOUT, FileStore, PrefixStore, Store

__all__ = ["register_rendezvous_handler", "rendezvous"]

_Handler = Callable[..., Iterator[tuple[Store, int, int]]]
_handlers: dict[str, _Handler] = {}


def register_rendezvous_handler(scheme: str, handler: _Handler) -> None:
    """Lets `handler(url, timeout=...)`, a generator of (store, rank, world size), serve URLs of a scheme.

    Raises:
        RuntimeError: the scheme has a handler.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(
    url: str, rank: int = -1, world_size: int = -1, timeout: datetime.timedelta = _DEFAULT_TIMEOUT, **kwargs: Any
) -> Iterator[tuple[Store, int, int]]:
    """A store that all processes share, this one's rank and their number, by the scheme of a URL.

    Args:
        url (str): "env://", "tcp://host:port" or "file:///path"; rank and world size may follow as `?rank=0&world_size=2`.
        rank, world_size (int): this process's number and the number of processes; -1 where the URL or the environment says.
        timeout (timedelta): how long operations on the store wait.

    Raises:
        RuntimeError: no handler for the scheme.
        ValueError: a part of the address, the rank or the world size is missing.
    """
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query))
    if (rank != -1 or world_size != -1) and ("rank" in given or "world_size" in given):
        raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
    if rank != -1:
        given["rank"] = str(rank)
    if world_size != -1:
        given["world_size"] = str(world_size)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    if given:
        url = parts._replace(query="&".join(f"{k}={v}" for k, v in given.items())).geturl()
        if not parts.netloc and "://" not in url:
            url = url.replace(f"{parts.scheme}:", f"{parts.scheme}://", 1)
    return _handlers[parts.scheme](url, timeout=timeout, **kwargs)


def _missing(kind: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {kind}:// rendezvous: {what}")


def _numbers(kind, parts):
    """Rank and world size of a URL."""
    given = dict(parse_qsl(parts.query))
    for name in ("rank", "world_size"):
        if name not in given:
            raise _missing(kind, f"{name.replace('_', ' ')} parameter missing")
    return int(given["rank"]), int(given["world_size"])


def _tcp_store(host: str, port: int, rank: int, size: int, timeout: datetime.timedelta) -> Store:
    from .tcp_store import TCPStore

    # A launcher's own store outlives the processes; each attempt of theirs has keys of its own.
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return PrefixStore(f"/worker/attempt_{attempt}", TCPStore(host, port, size, False, timeout))
    return TCPStore(host, port, size, rank == 0, timeout, multi_tenant=True)


def _tcp_handler(url: str, timeout: datetime.timedelta, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    parts = urlsplit(url)
    if not parts.port or not parts.hostname:
        raise _missing("tcp", "port number missing")
    rank, size = _numbers("tcp", parts)
    yield _tcp_store(parts.hostname, parts.port, rank, size, timeout), rank, size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _env_handler(url: str, timeout: datetime.timedelta, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    given = dict(parse_qsl(urlsplit(url).query))

    def variable(name: str) -> str:
        value = given.get(name.lower(), os.environ.get(name))
        if value is None:
            raise _missing("env", f"environment variable {name} expected, but not set")
        return value

    rank, size = int(variable("RANK")), int(variable("WORLD_SIZE"))
    host, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    yield _tcp_store(host, port, rank, size, timeout), rank, size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def _file_handler(url: str, timeout: datetime.timedelta, **kwargs: Any) -> Iterator[tuple[Store, int, int]]:
    parts = urlsplit(url)
    if not parts.path:
        raise _missing("file", "path missing")
    rank, size = _numbers("file", parts)
    store = FileStore(unquote(parts.path), size)
    store.set_timeout(timeout)
    yield store, rank, size
    raise RuntimeError("Unable to perform re-rendezvous using file:// method")


register_rendezvous_handler("tcp", _tcp_handler)
register_rendezvous_handler("env", _env_handler)
register_rendezvous_handler("file", _file_handler)


def __dir__() -> list[str]:
    return __all__
