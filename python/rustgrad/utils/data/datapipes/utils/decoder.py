"""What files hold, by their extensions: functions from an extension and bytes to a value, or None where they know no such file.

Pictures need Pillow, videos torchvision, sound torchaudio and .mat files SciPy; each is imported with the first such file.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
import tempfile
from collections.abc import Callable
from io import BufferedIOBase, RawIOBase
from typing import Any

from .common import StreamWrapper

__all__ = [
    "Decoder",
    "ImageHandler",
    "MatHandler",
    "audiohandler",
    "basichandlers",
    "extension_extract_fn",
    "handle_extension",
    "imagehandler",
    "mathandler",
    "videohandler",
]

_BASIC: dict[str, Callable[[bytes], Any]] = {
    **dict.fromkeys("txt text transcript".split(), lambda data: data.decode("utf-8")),
    **dict.fromkeys("cls cls2 class count index inx id".split(), int),
    **dict.fromkeys("json jsn".split(), json.loads),
    **dict.fromkeys("pyd pickle".split(), pickle.loads),
}
_PICTURES = "jpg jpeg png ppm pgm pbm pnm".split()
_VIDEOS = "mp4 ogv mjpeg avi mov h264 mpg webm wmv".split()
_SOUNDS = "flac mp3 sox wav m4a ogg wma".split()

# name: (what is returned, its dtype, mode of Pillow)
imagespecs = {
    **{f"{mode}8": ("numpy", "uint8", mode) for mode in ("l", "rgb", "rgba")},
    **{mode: ("numpy", "float", mode) for mode in ("l", "rgb", "rgba")},
    **{f"torch{mode}8": ("torch", "uint8", mode) for mode in ("l", "rgb", "rgba")},
    **{f"torch{mode}": ("torch", "float", mode or "rgb") for mode in ("l", "rgb", "", "rgba")},
    **{f"pil{mode}": ("pil", None, mode or "rgb") for mode in ("l", "", "rgb", "rgba")},
}


def basichandlers(extension: str, data: Any) -> Any:
    """Text, whole numbers, JSON and pickles."""
    decode = _BASIC.get(extension)
    return None if decode is None else decode(data)


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """A handler that calls `f` with the bytes of files with one of the extensions, which are separated by spaces."""
    endings = [ending.split(".") for ending in extensions.lower().split()]

    def handler(key: str, data: Any) -> Any:
        parts = key.lower().split(".")
        return f(data) if any(parts[-len(ending) :] == ending for ending in endings) else None

    return handler


def _required(name, package, what):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Package `{name.split('.')[0]}` is required to be installed for {what}. "
            f"Please use `pip install {package}` to install the package"
        ) from error


class ImageHandler:
    """Decodes pictures.

    Args:
        imagespec (str): "pil" for a picture of Pillow, "torch" for a tensor of channels, rows and columns, else an
            array of rows, columns and channels; then the mode "l", "rgb" or "rgba", and "8" for values of uint8, which
            are floats of 0 to 1 otherwise. "torch" and "pil" alone mean "rgb".

    Raises:
        AssertionError: there is no such specification.
    """

    def __init__(self, imagespec: str) -> None:
        assert imagespec in imagespecs, f"unknown image specification: {imagespec}"
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: Any) -> Any:
        if extension.lower() not in _PICTURES:
            return None
        pillow = _required("PIL.Image", "Pillow", "default image decoder")
        kind, dtype, mode = imagespecs[self.imagespec]
        picture = pillow.open(io.BytesIO(data)).convert(mode.upper())
        if kind == "pil":
            return picture
        numpy = _required("numpy", "numpy", "default image decoder")
        array = numpy.asarray(picture)
        if dtype == "float":
            array = array.astype(numpy.float32) / 255
        if kind == "numpy":
            return array
        from ....._base import as_tensor

        channels = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        return as_tensor(numpy.array(channels))


def imagehandler(imagespec: str) -> ImageHandler:
    """An `ImageHandler`."""
    return ImageHandler(imagespec)


def _read_as_file(read, extension, data):
    """What a function of a path makes of these bytes."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, f"file.{extension}")
        with open(path, "wb") as file:
            file.write(data)
        return read(path)


def videohandler(extension: str, data: Any) -> Any:
    """Videos, as `torchvision.io.read_video` returns them."""
    if extension not in _VIDEOS:
        return None
    reader = _required("torchvision.io", "torchvision", "default video file loader")
    return _read_as_file(reader.read_video, extension, data)


def audiohandler(extension: str, data: Any) -> Any:
    """Sound, as `torchaudio.load` returns it."""
    if extension not in _SOUNDS:
        return None
    reader = _required("torchaudio", "torchaudio", "default audio file loader")
    return _read_as_file(reader.load, extension, data)


class MatHandler:
    """Decodes files of MATLAB.

    Args:
        **loadmat_kwargs: arguments of `scipy.io.loadmat`.
    """

    def __init__(self, **loadmat_kwargs: Any) -> None:
        self.sio = _required("scipy.io", "scipy", "mat file")
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: Any) -> Any:
        return self.sio.loadmat(io.BytesIO(data), **self.loadmat_kwargs) if extension == "mat" else None


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """A `MatHandler`."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """The extension of a path, without the dot."""
    return os.path.splitext(pathname)[1][1:]


class Decoder:
    """Decodes pairs of a path and a binary stream or bytes.

    Args:
        *handler (callable): tried in this order; where none knows a file, its bytes are returned.
        key_fn (callable): of a path, what handlers are called with.
    """

    def __init__(
        self, *handler: Callable[[str, Any], Any], key_fn: Callable[[str], str] = extension_extract_fn
    ) -> None:
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable[[str, Any], Any]) -> None:
        """Adds handlers before those that are there."""
        self.handlers = [*handler, *self.handlers]

    @staticmethod
    def _is_stream_handle(data):
        inner = data.file_obj if isinstance(data, StreamWrapper) else data
        return isinstance(inner, (BufferedIOBase, RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """What one file holds; its stream is closed."""
        if not data:
            return data
        if self._is_stream_handle(data):
            stream, data = data, b"".join(data)
            stream.close()
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """A dict from path to content, of one pair or several."""
        result = {}
        for path, content in [data] if isinstance(data, tuple) else data:
            if path[0] == "_":
                result[path] = content.decode("utf-8") if isinstance(content, bytes) else content
            else:
                result[path] = self.decode1(self.key_fn(path), content)
        return result

    __call__ = decode
