"""Extreme arguments: zeros, subnormals, the smallest and the largest numbers, both sides of poles, branch points and
overflows, infinities and NaN, and the oracle for them.

An op's NumPy reference is evaluated number by number in 60 digits if mpmath has its functions and all values in it
are finite, else in double precision: so cancellation, overflow and underflow are the op's fault and not the
oracle's.
"""

import itertools

import numpy as np

from support import known, target
from support.checking import referenced
from support.optable import Op
from support.samples import Call, TensorSpec
from support.signature import bind

try:
    import mpmath
except ImportError:
    mpmath = None

DIGITS = 60
# (relative error, absolute error): some ulps, and some of the smallest subnormals.
ALLOWED = {"f32": (3e-6, 3e-45), "f64": (2e-14, 2e-323)}
# GPU compilers use fast-math.
ON_GPU = 2e-5

MAGNITUDES = [
    1e-20, 1e-8, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.70710678, 0.75, 0.9, 0.99, 0.999, 1, 1.001, 1.1, 1.5, 1.5707963, 2, 2.5,
    3, 3.1415927, 4, 5, 6.5, 8, 9.1, 10, 13.1, 17, 20, 27, 37.5, 50, 87, 88, 89.2, 100, 104, 170, 300, 1000, 1e4, 1e5,
    1e7, 1e10, 1e15, 1e18, 1e25, 1e30, 1e38,
]  # fmt: skip
WIDE = [1e-310, 1e-300, 1e-160, 1e-100, 650, 700, 708.5, 709.5, 710.2, 720, 744, 746, 1e60, 1e100, 1e155, 1e200, 1e300]
FEW = [0.0, 1e-30, 1e-4, 0.3, 0.5, 1, 1.5, 2, 3, 10, 89, 1e3, 1e7, 1e18, 1e30]
FEW_WIDE = [1e-310, 1e-200, 709.5, 1e100, 1e200, 1e300]


def numbers(dtype: str, few: bool) -> np.ndarray:
    """The numbers of a dtype with which an argument is tested, of both signs."""
    kind = np.float32 if dtype == "f32" else np.float64
    info = np.finfo(kind)
    wide = (FEW_WIDE if few else WIDE) if dtype == "f64" else []
    ends = [info.smallest_subnormal, info.tiny, info.max, np.inf]
    near = [] if few else [0.0, 3 * info.tiny / 4, 1 - info.epsneg, 1 + info.eps]
    positive = np.array([*(FEW if few else MAGNITUDES), *wide, *ends, *near]).astype(kind)
    return np.concatenate([positive, -positive, np.array([np.nan], kind)])


def columns(dtype: str, count: int) -> list[np.ndarray]:
    """That many arguments of equal length: all numbers, all pairs of some, or random triples and more."""
    if count == 1:
        return [numbers(dtype, False)]
    few = numbers(dtype, True)
    if count == 2:
        pairs = np.array(list(itertools.product(few, few)), dtype=few.dtype)
        return [np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])]
    rng = np.random.RandomState(7)
    return [rng.permutation(np.tile(few, 8)) for _ in range(count)]


def normal(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Drops subnormal numbers, which a GPU may flush to zero."""
    keep = np.ones(arrays[0].shape, bool)
    for a in arrays:
        with np.errstate(all="ignore"):
            keep &= ~((np.abs(a) < np.finfo(a.dtype).tiny) & (a != 0))
    return [a[keep] for a in arrays]


def is_float(spec: TensorSpec) -> bool:
    return spec.dtype in ("f32", "f64") and spec.fill != "spd"


def calls(op: Op, dtype: str) -> list[tuple[Call, list[np.ndarray]]]:
    """The op's calls with only float tensors, and what to fill these with; one for each set of other arguments."""
    found, seen = [], set()
    for call in op.calls():
        specs = call.tensors()
        others = repr((call.map(lambda s: "tensor").args, call.map(lambda s: "tensor").kwargs))
        if specs and all(is_float(s) for s in specs) and others not in seen:
            seen.add(others)
            found.append((call, columns(dtype, len(specs))))
    return found


def pointwise(op: Op) -> bool:
    """Whether an op with a reference is elementwise with real or bool results."""
    if op.only_inplace or op.leaf in ("complex", "polar") or "dim" in op.signature:
        return False
    if op.kind == "elementwise":
        return True
    try:
        call = next(c for c in op.calls() if c.tensors() and all(is_float(s) for s in c.tensors()))
        shape = max((s.shape for s in call.tensors()), key=len)
        if not shape or op.kind != "composite" or any(len(s.shape) > 2 for s in call.tensors()):
            return False
        rng = np.random.RandomState(3)
        arrays = [rng.uniform(0.1, 0.9, 12) for _ in call.tensors()]
        plain, turned = evaluated(op, call, arrays), evaluated(op, call, [np.roll(a, 5) for a in arrays])
        return getattr(plain, "shape", None) == (12,) and np.allclose(np.roll(plain, 5), turned, rtol=1e-12)
    except (StopIteration, TypeError, ValueError, IndexError, KeyError):
        return False


class Given(TensorSpec):
    """A tensor argument with given values."""

    def array(self):
        return self.__dict__["values"]


def given(call: Call, arrays: list[np.ndarray]) -> Call:
    """The call with these values for its tensors."""
    rest = iter(arrays)

    def filled(spec):
        values = next(rest)
        new = Given("f32" if values.dtype == np.float32 else "f64", values.shape)
        new.__dict__["values"] = values
        return new

    return call.map(filled)


def evaluated(op: Op, call: Call, arrays: list[np.ndarray]):
    """The reference in double precision; numbers next to float32 tensors are rounded to float32."""
    built = given(call, arrays)
    if arrays[0].dtype == np.float32:
        built = Call(built.text, [single(a) for a in built.args], {k: single(v) for k, v in built.kwargs.items()})
    return referenced(op, built)


def single(value):
    return float(np.float32(value)) if isinstance(value, float) else value


def expected(op: Op, call: Call, arrays: list[np.ndarray]) -> np.ndarray:
    """The reference at these values, in as many digits as possible."""
    want = np.asarray(evaluated(op, call, arrays))
    if mpmath is None or want.dtype.kind != "f":
        return want
    want = want.astype(np.float64)
    with mpmath.workdps(DIGITS):
        for i, values in enumerate(zip(*arrays)):
            # mpmath loses the sign of zero, and NumPy is exact there.
            if all(np.isfinite(v) and v != 0 for v in values):
                exact = precise(op, call, [mpmath.mpf(float(v)) for v in values], arrays[0].dtype == np.float32)
                if exact is not None:
                    want[i] = exact
    return want


def precise(op: Op, call: Call, values: list, narrow: bool) -> float | None:
    """The reference in many digits; None if it is not a real number or uses functions that mpmath lacks."""
    rest = iter(values)
    built = call.map(lambda spec: next(rest))

    def number(value):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        return mpmath.mpf(single(value) if narrow else value)

    bound = {k: number(v) for k, v in bind(op.signature, built.args, built.kwargs).items()}
    names = {f"x{i}": number(a) for i, a in enumerate(built.args)}
    try:
        found = eval(op.reference, {"np": Functions, "scipy": Functions, "abs": abs} | bound | names)
        return float(found) if isinstance(found, mpmath.mpf) and not mpmath.isnan(found) else None
    except (ArithmeticError, ValueError, AttributeError, TypeError, NotImplementedError):
        return None
    except mpmath.libmp.NoConvergence:
        return None


class Functions:
    """NumPy's and SciPy's names for mpmath's functions."""

    @staticmethod
    def where(condition, a, b):
        return a if condition else b


def within(least: float, most: float, function):
    """A function that mpmath computes in reasonable time at these magnitudes; beyond, double precision is used."""

    def limited(*x):
        if any(not least <= v <= most for v in x):
            raise ValueError("out of reach")
        return function(*x)

    return limited


def names():
    m = mpmath
    zero = m.mpf(0)
    near = lambda f: within(-1000, 1000, f)
    middle = lambda f: within(0.01, 120, f)
    table = {
        "exp": m.exp, "expm1": m.expm1, "log": m.log, "log1p": m.log1p, "sqrt": m.sqrt, "sin": m.sin, "cos": m.cos,
        "tan": m.tan, "arcsin": m.asin, "arccos": m.acos, "arctan": m.atan, "arctan2": m.atan2, "sinh": m.sinh,
        "cosh": m.cosh, "tanh": m.tanh, "arcsinh": m.asinh, "arccosh": m.acosh, "arctanh": m.atanh, "hypot": m.hypot,
        "log2": lambda x: m.log(x) / m.log(2), "log10": m.log10, "sinc": m.sincpi, "abs": abs, "maximum": max,
        "minimum": min, "fmax": max, "fmin": min, "power": lambda x, y: m.power(x, y),
        "deg2rad": m.radians, "rad2deg": m.degrees, "square": lambda x: x * x,
        "floor": m.floor, "ceil": m.ceil, "trunc": lambda x: trunc(x), "sign": m.sign,
        "logaddexp": lambda x, y: max(x, y) + m.log1p(m.exp(-abs(x - y))),
        "logaddexp2": lambda x, y: max(x, y) + m.log1p(m.mpf(2) ** -abs(x - y)) / m.log(2),
        # SciPy's
        "erf": m.erf, "erfc": m.erfc, "expit": lambda x: 1 / (1 + m.exp(-x)), "logit": lambda x: m.log(x / (1 - x)),
        "gammaln": lambda x: m.log(abs(m.gamma(x))) if abs(x) < 1e6 else m.loggamma(x), "digamma": m.digamma,
        "xlogy": lambda x, y: zero if x == 0 else x * m.log(y),
        "xlog1py": lambda x, y: zero if x == 0 else x * m.log1p(y),
        "entr": lambda x: -x * m.log(x) if x > 0 else zero if x == 0 else 1 / zero,
        "ndtr": m.ncdf, "log_ndtr": lambda x: m.log(m.ncdf(x)) if x < 0 else m.log1p(-m.ncdf(-x)),
        "erfinv": m.erfinv, "polygamma": near(lambda n, x: m.psi(int(n), x)),
        "gammainc": middle(lambda a, x: m.gammainc(a, 0, x, regularized=True)),
        "gammaincc": middle(lambda a, x: m.gammainc(a, x, m.inf, regularized=True)),
        "i0": near(lambda x: m.besseli(0, x)), "i1": near(lambda x: m.besseli(1, x)),
        "i0e": near(lambda x: m.besseli(0, x) * m.exp(-abs(x))), "i1e": near(lambda x: m.besseli(1, x) * m.exp(-abs(x))),
        "j0": near(lambda x: m.besselj(0, x)), "j1": near(lambda x: m.besselj(1, x)),
        "y0": near(lambda x: m.bessely(0, x)), "y1": near(lambda x: m.bessely(1, x)),
        "k0": near(lambda x: m.besselk(0, x)), "k1": near(lambda x: m.besselk(1, x)),
        "k0e": near(lambda x: m.besselk(0, x) * m.exp(x)), "k1e": near(lambda x: m.besselk(1, x) * m.exp(x)),
        "airy": near(lambda x: (m.airyai(x),)), "isinf": lambda x: False,
        "erfcx": lambda x: m.exp(x * x) * m.erfc(x) if abs(x) < 1e4 else 1 / zero,
    }  # fmt: skip

    def trunc(x):
        return m.floor(x) if x >= 0 else m.ceil(x)

    return table


if mpmath is not None:
    for name, function in names().items():
        setattr(Functions, name, staticmethod(function))
    Functions.special = Functions
    Functions.pi = mpmath.pi


def wrong(got: np.ndarray, want: np.ndarray, dtype: str, device: str) -> np.ndarray:
    """A mask of wrong results. A GPU may flush subnormals to zero."""
    if want.dtype.kind != "f":
        return got != want
    # Some ops always compute in double precision.
    kind, dtype = (np.float32, dtype) if got.dtype == np.float32 else (np.float64, "f64")
    rtol, atol = ALLOWED[dtype] if device == "cpu" else (ON_GPU, float(np.finfo(kind).tiny))
    with np.errstate(all="ignore"):
        got, rounded = got.astype(np.float64), want.astype(kind).astype(np.float64)
        right = np.isclose(got, rounded, rtol, atol, equal_nan=True)
        # At the threshold of overflow both results are accepted.
        most = float(np.finfo(kind).max)
        verge = (np.abs(want) > most * (1 - 4 * rtol)) & (np.abs(want) / (1 + 4 * rtol) < most)
        return ~(right | verge & (np.sign(got) == np.sign(want)) & (np.abs(got) > most * (1 - 8 * rtol)))


def is_hardware(device: str) -> bool:
    """Whether it is a GPU that may fuse and reorder, and make zeros of numbers that are not normal, as WGSL allows."""
    return device == "gpu" and target.torch.gpu.get_device_properties().type != "Cpu"


def known_at(op: Op, device: str, values: dict) -> list[tuple[str, np.ndarray]]:
    """The known differences of an op: (reason, mask)."""
    found = []
    places = {device, "hardware"} if is_hardware(device) else {device}
    for ops, where, on, condition, reason in known.EXTREMES:
        if op.name in ops.split() and places & set(where.split()) and values["dtype"] in on:
            if "x1" in condition and "x1" not in values:
                continue  # a call with a number instead
            with np.errstate(all="ignore"):
                found.append((reason, np.broadcast_to(eval(condition, {"np": np} | values), values["want"].shape)))
    return found
