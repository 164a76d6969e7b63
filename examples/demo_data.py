"""Data of the demo: scikit-learn's bundled digits, or a folder of MNIST idx files.

An idx file is a big-endian header (two zero bytes, a type byte, the number of dimensions, the sizes)
followed by the values; see http://yann.lecun.com/exdb/mnist/.
"""

from __future__ import annotations

import gzip
import pathlib
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

HELD_OUT = 0.2

Array = NDArray[Any]
Arrays = tuple[Array, Array, Array, Array]


@dataclass
class Digits:
    """arrays: training images and labels, held-out images and labels; images are rows of floats in [0, 1]."""

    name: str
    side: int
    arrays: Arrays


def read_idx(path: pathlib.Path) -> Array:
    """The array in an idx file, gzipped or not; unsigned bytes only."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    zeros, kind, ndim = struct.unpack(">HBB", raw[:4])
    if zeros != 0 or kind != 8:
        raise ValueError(f"{path}: not an idx file of unsigned bytes")
    shape = struct.unpack(f">{ndim}I", raw[4 : 4 + 4 * ndim])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * ndim).reshape(shape)


def read_pair(folder: pathlib.Path, prefix: str) -> tuple[Array, Array] | None:
    """(images, labels) of the files that start with `prefix`, or None."""
    found = [sorted(folder.glob(f"{prefix}*{what}-idx{n}-ubyte*")) for what, n in (("images", 3), ("labels", 1))]
    if not all(found):
        return None
    return read_idx(found[0][0]), read_idx(found[1][0])


def rows(images: Array, largest: float) -> Array:
    return (images.reshape(len(images), -1) / largest).astype(np.float32)


def split(x: Array, y: Array, seed: int) -> Arrays:
    """Holds a random fifth out."""
    order = np.random.default_rng(seed).permutation(len(x))
    held = int(len(x) * HELD_OUT)
    test, train = order[:held], order[held:]
    return x[train], y[train], x[test], y[test]


def load(folder: str | None, seed: int) -> Digits:
    """The data of `folder`, or the bundled digits for None."""
    if folder is None:
        from sklearn.datasets import load_digits

        digits: Any = load_digits()
        x, y = rows(digits.images, 16.0), digits.target.astype(np.int64)
        return Digits("scikit-learn digits", 8, split(x, y, seed))
    where = pathlib.Path(folder)
    parts = [p for p in (read_pair(where, "train"), read_pair(where, "t10k")) if p is not None]
    if not parts:
        raise SystemExit(f"{folder}: no MNIST idx files; expected e.g. t10k-images-idx3-ubyte.gz and its labels")
    pairs = [(rows(images, 255.0), labels.astype(np.int64)) for images, labels in parts]
    arrays = (*pairs[0], *pairs[1]) if len(pairs) == 2 else split(*pairs[0], seed)
    return Digits(f"MNIST files ({where.resolve().name})", parts[0][0].shape[-1], arrays)
