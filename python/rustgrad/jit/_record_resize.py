"""`interpolate` as calls of the ops for one mode and one number of dimensions."""

from __future__ import annotations

import ast
from typing import Any

from ._record import CannotRecord, Code, Recorder

__all__ = ["interpolate"]

_SMOOTH = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}


def interpolate(r: Recorder, a: dict[str, Any], result: Any) -> str:
    """The code of a call of `interpolate`. `result` is what it gave, None where the input is code."""
    if isinstance(a["input"], Code):
        return _interpolate_code(r, a)
    x, scales, sizes = a["input"], _repeated(a.get("scale_factor"), dims := a["input"].dim() - 2), a.get("size")
    if a.get("mode") == "area":
        return r.call_text(f"adaptive_avg_pool{dims}d", x, list(result.shape[2:]))
    if a.get("recompute_scale_factor") and scales is not None:
        sizes, scales = [int(n * s) for n, s in zip(x.shape[2:], scales, strict=True)], None
    return _resized(r, a, x, dims, sizes, scales)


def _repeated(value: Any, dims: int) -> Any:
    """One value for each dimension; what code computes is left as it is."""
    if value is None or isinstance(value, Code):
        return value
    return list(value) if isinstance(value, (list, tuple)) else [value] * dims


def _resized(r: Recorder, a: dict[str, Any], x: Any, dims: int, size: Any, scales: Any) -> str:
    mode, sizes = a.get("mode", "nearest"), _repeated(size, dims)
    if mode == "area":
        return r.call_text(f"adaptive_avg_pool{dims}d", x, sizes)
    op = f"upsample_{mode if mode in _SMOOTH else 'nearest'}{dims}d"
    if mode == "nearest-exact":
        op = f"_upsample_nearest_exact{dims}d"
    elif a.get("antialias"):
        op = f"_{op}_aa"
    corners = [a.get("align_corners") or False] if mode in _SMOOTH else []
    return r.call_text(op, x, sizes, *corners, None if scales is None else [float(s) for s in scales])


def _literal(value: Any) -> Any:
    """Code that is only numbers, as these."""
    try:
        return ast.literal_eval(str(value)) if isinstance(value, Code) else value
    except (ValueError, SyntaxError):
        return value


def _length(value: Any) -> int | None:
    """The number of items, where it can be seen."""
    if isinstance(value, Code):
        tree = ast.parse(str(value), mode="eval").body
        return len(tree.elts) if isinstance(tree, (ast.List, ast.Tuple)) else None
    return len(value) if isinstance(value, (list, tuple)) else None


def _interpolate_code(r: Recorder, a: dict[str, Any]) -> str:
    """For an input that is not known yet: the mode or the sizes say how many dimensions it has, else it is asked."""
    mode, size, scale = a.get("mode", "nearest"), a.get("size"), a.get("scale_factor")
    scale, size = _literal(scale), _literal(size)
    if isinstance(scale, Code) or a.get("recompute_scale_factor") or mode == "area" and size is None:
        raise CannotRecord("sizes that are computed from scales when it runs")
    dims = _SMOOTH.get(mode) or _length(size) or _length(scale)
    if dims is not None:
        return _resized(r, a, a["input"], dims, size, _repeated(scale, dims))
    if isinstance(size, Code):
        raise CannotRecord("a size whose number of dimensions is not known")
    x = r.assign(str(a["input"]))
    one, two, three = (_resized(r, a, x, d, size, _repeated(scale, d)) for d in (1, 2, 3))
    return f"({two} if torch.eq(torch.dim({x}), 4) else ({one} if torch.eq(torch.dim({x}), 3) else {three}))"
