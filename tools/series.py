"""Writes src/chebyshev.rs: Chebyshev series of special functions, computed with mpmath.

    python tools/series.py > src/chebyshev.rs

Each row: a name, a description, and the function of t in [-1, 1] to expand. The functions are evaluated from their
definitions at 60 digits; coefficients below float64's precision are dropped.
"""

import textwrap

from mpmath import airyai, airybi, besseli, besselj, besselk, bessely, cos, erfc, exp, log, mp, mpf, pi, sin, sqrt

mp.dps = 60
NODES = 96


def coefficients(f):
    """Of the Chebyshev series, from its values at the zeros of a Chebyshev polynomial."""
    angles = [pi * (2 * k + 1) / (2 * NODES) for k in range(NODES)]
    values = [f(cos(a)) for a in angles]
    found = [2 * sum(v * cos(j * a) for v, a in zip(values, angles)) / NODES for j in range(NODES)]
    found[0] /= 2
    largest = max(abs(c) for c in found)
    kept = max(j for j, c in enumerate(found) if abs(c) > largest * mpf("1e-17"))
    return found[: kept + 1]


def within(a, b, f):
    """f of x in [a, b]."""
    return lambda t: f((a + b) / 2 + (b - a) / 2 * t)


def beyond(a, f):
    """f of x >= a, by a / x."""
    return lambda t: f(2 * a / (1 + t))


def beyond_squared(a, f):
    """f of x >= a, by the square of a / x."""
    return lambda t: f(a / sqrt((1 + t) / 2))


def squared(b, f):
    """f of x in [0, b], by the square of x."""
    return lambda t: f(b * sqrt((1 + t) / 2))


def waves(n):
    """Hankel's P and x Q of order n: `J = sqrt(2 / (pi x)) (P cos c - Q sin c)`, Y with sin and cos."""
    scale = lambda x: sqrt(pi * x / 2)
    c = lambda x: x - (2 * n + 1) * pi / 4
    p = lambda x: scale(x) * (besselj(n, x) * cos(c(x)) + bessely(n, x) * sin(c(x)))
    q = lambda x: scale(x) * (bessely(n, x) * cos(c(x)) - besselj(n, x) * sin(c(x))) * x
    return p, q


def zeta(x):
    return 2 * x * sqrt(x) / 3


def root(z):
    """The x whose zeta is z."""
    return (3 * z / 2) ** (mpf(2) / 3)


def airy_waves():
    """F and zeta G: `Ai(-x) = (F sin(zeta + pi/4) - G cos(zeta + pi/4)) / (sqrt(pi) x^(1/4))`."""
    scale = lambda x: sqrt(pi) * x ** mpf("0.25")
    s, c = lambda z: sin(z + pi / 4), lambda z: cos(z + pi / 4)
    f = lambda z: scale(root(z)) * (airyai(-root(z)) * s(z) + airybi(-root(z)) * c(z))
    g = lambda z: scale(root(z)) * (airybi(-root(z)) * s(z) - airyai(-root(z)) * c(z)) * z
    return f, g


EIGHT, TWO, NINE = mpf(8), mpf(2), mpf("2.25")
P0, Q0 = waves(0)
P1, Q1 = waves(1)
F, G = airy_waves()
SERIES = [
    ("I0_NEAR", "exp(-x) I0(x), x / 4 - 1 up to 8", within(0, EIGHT, lambda x: exp(-x) * besseli(0, x))),
    ("I0_FAR", "sqrt(x) exp(-x) I0(x), 16 / x - 1", beyond(EIGHT, lambda x: sqrt(x) * exp(-x) * besseli(0, x))),
    ("I1_NEAR", "exp(-x) I1(x) / x, x / 4 - 1 up to 8", within(0, EIGHT, lambda x: exp(-x) * besseli(1, x) / x)),
    ("I1_FAR", "sqrt(x) exp(-x) I1(x), 16 / x - 1", beyond(EIGHT, lambda x: sqrt(x) * exp(-x) * besseli(1, x))),
    (
        "K0_NEAR",
        "K0(x) + log(x / 2) I0(x), x^2 / 2 - 1 up to 2",
        squared(TWO, lambda x: besselk(0, x) + log(x / 2) * besseli(0, x)),
    ),
    ("K0_FAR", "sqrt(x) exp(x) K0(x), 4 / x - 1", beyond(TWO, lambda x: sqrt(x) * exp(x) * besselk(0, x))),
    (
        "K1_NEAR",
        "x (K1(x) - log(x / 2) I1(x)), x^2 / 2 - 1 up to 2",
        squared(TWO, lambda x: x * (besselk(1, x) - log(x / 2) * besseli(1, x))),
    ),
    ("K1_FAR", "sqrt(x) exp(x) K1(x), 4 / x - 1", beyond(TWO, lambda x: sqrt(x) * exp(x) * besselk(1, x))),
    ("J0_NEAR", "J0(x), x^2 / 32 - 1 up to 8", squared(EIGHT, lambda x: besselj(0, x))),
    ("J1_NEAR", "J1(x) / x, x^2 / 32 - 1 up to 8", squared(EIGHT, lambda x: besselj(1, x) / x)),
    (
        "Y0_NEAR",
        "Y0(x) - 2 / pi log(x / 2) J0(x), x^2 / 32 - 1 up to 8",
        squared(EIGHT, lambda x: bessely(0, x) - 2 / pi * log(x / 2) * besselj(0, x)),
    ),
    (
        "Y1_NEAR",
        "(Y1(x) - 2 / pi (log(x / 2) J1(x) - 1 / x)) / x, x^2 / 32 - 1 up to 8",
        squared(EIGHT, lambda x: (bessely(1, x) - 2 / pi * (log(x / 2) * besselj(1, x) - 1 / x)) / x),
    ),
    ("P0", "Hankel's P of order 0, 128 / x^2 - 1", beyond_squared(EIGHT, P0)),
    ("Q0", "x times Hankel's Q of order 0, 128 / x^2 - 1", beyond_squared(EIGHT, Q0)),
    ("P1", "Hankel's P of order 1, 128 / x^2 - 1", beyond_squared(EIGHT, P1)),
    ("Q1", "x times Hankel's Q of order 1, 128 / x^2 - 1", beyond_squared(EIGHT, Q1)),
    ("AIRY_NEAR", "Ai(x), x / 2.25 between -2.25 and 2.25", lambda t: airyai(NINE * t)),
    (
        "AIRY_FAR",
        "2 sqrt(pi) x^(1/4) exp(z) Ai(x), 4.5 / z - 1 for z = 2/3 x^(3/2)",
        beyond(NINE, lambda z: 2 * sqrt(pi) * root(z) ** mpf("0.25") * exp(z) * airyai(root(z))),
    ),
    ("AIRY_F", "F of Ai(-x), 10.125 / z^2 - 1", beyond_squared(NINE, F)),
    ("AIRY_G", "z G of Ai(-x), 10.125 / z^2 - 1", beyond_squared(NINE, G)),
    (
        "ERFCX",
        "(1 + 2 x) erfcx(x), (x - 3.75) / (x + 3.75)",
        lambda t: (
            (1 + 2 * (mpf("3.75") * (1 + t) / (1 - t)))
            * exp((mpf("3.75") * (1 + t) / (1 - t)) ** 2)
            * erfc(mpf("3.75") * (1 + t) / (1 - t))
        ),
    ),
]

HEAD = """//! Chebyshev series of special functions, and their sum. Written by `tools/series.py`: do not edit.
//!
//! A row says which function it is, and of what argument t in [-1, 1]. Kernels of the CPU sum them as they are, shaders
//! get the same numbers (`gpu::kernels::template`).

pub struct Series(pub &'static [f64]);

impl Series {
    /// The sum at `t`, by Clenshaw's recurrence.
    pub fn at(&self, t: f64) -> f64 {
        let (mut a, mut b) = (0.0, 0.0);
        for c in self.0[1..].iter().rev() {
            (a, b) = (2.0 * t * a - b + c, a);
        }
        t * a - b + self.0[0]
    }
}
"""

if __name__ == "__main__":
    print(HEAD)
    print("/// Every series by the name that shaders call it by.")
    print(f"pub static ALL: [(&str, &Series); {len(SERIES)}] = [")
    print("\n".join(f'    ("series_{name.lower()}", &{name}),' for name, _, _ in SERIES), "\n];", sep="")
    for name, meaning, function in SERIES:
        numbers = textwrap.fill(", ".join(repr(float(c)) for c in coefficients(function)), 112)
        lines = textwrap.indent(numbers, "    ")
        print(f"\n/// {meaning}\n#[rustfmt::skip]\npub static {name}: Series = Series(&[\n{lines},\n]);")
