"""`rustgrad.hub`: files and state dicts from URLs, with a cache; models from a local folder with a `hubconf.py`.

Code is never downloaded: `load` takes `source="local"` only.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from typing import Any
from urllib.parse import urlparse

from ._absent import getattr_of

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX: re.Pattern[str] = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK: int = 128 * 1024
_folder: str | None = None
_Names = list[str]


def _get_torch_home():
    """$TORCH_HOME, $XDG_CACHE_HOME/torch or ~/.cache/torch."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of the cache: that of `set_dir`, $TORCH_HOME/hub, $XDG_CACHE_HOME/torch/hub or ~/.cache/torch/hub."""
    if _folder is not None:
        return _folder
    return os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder of the cache."""
    global _folder
    _folder = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Writes what a URL has to a file, which appears only when it is complete.

    Args:
        url (str): `https:`, `http:`, `file:` or what else `urllib` opens.
        dst (str): the path of the file.
        hash_prefix (str): the first hexadecimal digits of the SHA-256 of the contents.
        progress (bool): show the share that has arrived on standard error, if that is a terminal.

    Raises:
        RuntimeError: the hash is another one.
        urllib.error.URLError: the URL cannot be read.
    """
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source:
        total = int(source.headers.get("Content-Length") or 0)
        part = tempfile.NamedTemporaryFile(delete=False, dir=os.path.dirname(dst) or ".", suffix=".partial")
        try:
            with part:
                done = 0
                while chunk := source.read(READ_DATA_CHUNK):
                    part.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    _show(done, total, progress)
            _show(None, total, progress)
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            shutil.move(part.name, dst)
        finally:
            if os.path.exists(part.name):
                os.remove(part.name)


def _show(done, total, progress):
    if not progress or not sys.stderr.isatty():
        return
    if done is None:
        sys.stderr.write("\n")
    else:
        share = f"{100 * done / total:5.1f} % of " if total else ""
        sys.stderr.write(f"\r{share}{(total or done) / 1e6:.1f} MB")
    sys.stderr.flush()


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """The object that a checkpoint at a URL holds; the file stays in the cache.

    Only what `load` allows by default is read: `weights_only=False` is not passed on, since the file is of a stranger.

    Args:
        model_dir (str): the folder, by default `get_dir()` + "/checkpoints".
        map_location: see `load`.
        check_hash (bool): the file name has, after a dash, the first digits of its SHA-256: `resnet18-f37072fd.pth`.
        file_name (str): the name in the folder, by default that of the URL.

    Raises:
        RuntimeError: the hash is another one.
    """
    from .serialization import load as load_file

    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) == 1 and not members[0].is_dir():
                # A checkpoint that was packed once more.
                inner = os.path.join(model_dir, os.path.basename(members[0].filename))
                with archive.open(members[0]) as source, open(inner, "wb") as target:
                    shutil.copyfileobj(source, target)
                path = inner
    return load_file(path, map_location=map_location)


def _entries(repo, source):
    if source != "local":
        raise NotImplementedError(
            f"hub: code of {repo!r} is not downloaded; expected source='local' and a folder with a hubconf.py. "
            "Clone the repository first."
        )
    path = os.path.join(os.fspath(repo), "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(f"hub: no file {path}")
    sys.path.insert(0, os.fspath(repo))
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.fspath(repo))
    return module


def _entry(module, model):
    found = getattr(module, model, None)
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What the function `model` of a folder's `hubconf.py` returns for the other arguments.

    Raises:
        NotImplementedError: another source than "local".
        RuntimeError: there is no such function.
    """
    return _entry(_entries(repo_or_dir, source), model)(*args, **kwargs)


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    source: str = "github",
) -> str | None:
    """The docstring of a function of a folder's `hubconf.py`; `source="local"` only."""
    return _entry(_entries(github, source), model).__doc__


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    verbose: bool = True,
    source: str = "github",
) -> _Names:
    """The names of the functions in a folder's `hubconf.py`; `source="local"` only."""
    module = _entries(github, source)
    return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


__getattr__ = getattr_of(__name__)


def __dir__() -> _Names:
    return __all__
