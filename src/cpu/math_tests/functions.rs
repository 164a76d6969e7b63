//! Elementary functions and their libm counterparts, each as a type: the rows of the tests in this folder.

use crate::cpu::number_class::Real;

mod c {
    unsafe extern "C" {
        pub safe fn erf(x: f64) -> f64;
        pub safe fn erfc(x: f64) -> f64;
        pub safe fn acosh(x: f64) -> f64;
        pub safe fn atanh(x: f64) -> f64;
        pub safe fn asinh(x: f64) -> f64;
    }
}

pub trait Unary {
    const NAME: &'static str;
    fn f<T: Real>(x: T) -> T;
    fn want(x: f64) -> f64;
}

pub struct Exp;
impl Unary for Exp {
    const NAME: &'static str = "exp";
    fn f<T: Real>(x: T) -> T {
        x.exp()
    }
    fn want(x: f64) -> f64 {
        x.exp()
    }
}
pub struct Exp2;
impl Unary for Exp2 {
    const NAME: &'static str = "exp2";
    fn f<T: Real>(x: T) -> T {
        x.exp2()
    }
    fn want(x: f64) -> f64 {
        x.exp2()
    }
}
pub struct Expm1;
impl Unary for Expm1 {
    const NAME: &'static str = "expm1";
    fn f<T: Real>(x: T) -> T {
        x.expm1()
    }
    fn want(x: f64) -> f64 {
        x.exp_m1()
    }
}
pub struct Sigmoid;
impl Unary for Sigmoid {
    const NAME: &'static str = "sigmoid";
    fn f<T: Real>(x: T) -> T {
        x.sigmoid()
    }
    fn want(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }
}
pub struct Ln;
impl Unary for Ln {
    const NAME: &'static str = "ln";
    fn f<T: Real>(x: T) -> T {
        x.ln()
    }
    fn want(x: f64) -> f64 {
        x.ln()
    }
}
pub struct Log2;
impl Unary for Log2 {
    const NAME: &'static str = "log2";
    fn f<T: Real>(x: T) -> T {
        x.log2()
    }
    fn want(x: f64) -> f64 {
        x.log2()
    }
}
pub struct Log10;
impl Unary for Log10 {
    const NAME: &'static str = "log10";
    fn f<T: Real>(x: T) -> T {
        x.log10()
    }
    fn want(x: f64) -> f64 {
        x.log10()
    }
}
pub struct Log1p;
impl Unary for Log1p {
    const NAME: &'static str = "log1p";
    fn f<T: Real>(x: T) -> T {
        x.log1p()
    }
    fn want(x: f64) -> f64 {
        x.ln_1p()
    }
}
pub struct Sin;
impl Unary for Sin {
    const NAME: &'static str = "sin";
    fn f<T: Real>(x: T) -> T {
        x.sin()
    }
    fn want(x: f64) -> f64 {
        x.sin()
    }
}
pub struct Cos;
impl Unary for Cos {
    const NAME: &'static str = "cos";
    fn f<T: Real>(x: T) -> T {
        x.cos()
    }
    fn want(x: f64) -> f64 {
        x.cos()
    }
}
pub struct Tan;
impl Unary for Tan {
    const NAME: &'static str = "tan";
    fn f<T: Real>(x: T) -> T {
        x.tan()
    }
    fn want(x: f64) -> f64 {
        x.tan()
    }
}
pub struct Asin;
impl Unary for Asin {
    const NAME: &'static str = "asin";
    fn f<T: Real>(x: T) -> T {
        x.asin()
    }
    fn want(x: f64) -> f64 {
        x.asin()
    }
}
pub struct Acos;
impl Unary for Acos {
    const NAME: &'static str = "acos";
    fn f<T: Real>(x: T) -> T {
        x.acos()
    }
    fn want(x: f64) -> f64 {
        x.acos()
    }
}
pub struct Atan;
impl Unary for Atan {
    const NAME: &'static str = "atan";
    fn f<T: Real>(x: T) -> T {
        x.atan()
    }
    fn want(x: f64) -> f64 {
        x.atan()
    }
}
pub struct Sinh;
impl Unary for Sinh {
    const NAME: &'static str = "sinh";
    fn f<T: Real>(x: T) -> T {
        x.sinh()
    }
    fn want(x: f64) -> f64 {
        x.sinh()
    }
}
pub struct Cosh;
impl Unary for Cosh {
    const NAME: &'static str = "cosh";
    fn f<T: Real>(x: T) -> T {
        x.cosh()
    }
    fn want(x: f64) -> f64 {
        x.cosh()
    }
}
pub struct Tanh;
impl Unary for Tanh {
    const NAME: &'static str = "tanh";
    fn f<T: Real>(x: T) -> T {
        x.tanh()
    }
    fn want(x: f64) -> f64 {
        x.tanh()
    }
}
pub struct Asinh;
impl Unary for Asinh {
    const NAME: &'static str = "asinh";
    fn f<T: Real>(x: T) -> T {
        x.asinh()
    }
    fn want(x: f64) -> f64 {
        c::asinh(x)
    }
}
pub struct Acosh;
impl Unary for Acosh {
    const NAME: &'static str = "acosh";
    fn f<T: Real>(x: T) -> T {
        x.acosh()
    }
    fn want(x: f64) -> f64 {
        c::acosh(x)
    }
}
pub struct Atanh;
impl Unary for Atanh {
    const NAME: &'static str = "atanh";
    fn f<T: Real>(x: T) -> T {
        x.atanh()
    }
    fn want(x: f64) -> f64 {
        c::atanh(x)
    }
}
pub struct Erf;
impl Unary for Erf {
    const NAME: &'static str = "erf";
    fn f<T: Real>(x: T) -> T {
        x.erf()
    }
    fn want(x: f64) -> f64 {
        c::erf(x)
    }
}
/// The normal distribution function below zero.
pub struct Below;
impl Unary for Below {
    const NAME: &'static str = "normal";
    fn f<T: Real>(x: T) -> T {
        x.normal().0
    }
    fn want(x: f64) -> f64 {
        0.5 * c::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
    }
}
pub struct Erfc;
impl Unary for Erfc {
    const NAME: &'static str = "erfc";
    fn f<T: Real>(x: T) -> T {
        x.erfc()
    }
    fn want(x: f64) -> f64 {
        c::erfc(x)
    }
}
