//! The gamma function and its kin, in f64 and one element at a time.

mod c {
    unsafe extern "C" {
        pub safe fn lgamma(x: f64) -> f64;
    }
}
pub fn lgamma(x: f64) -> f64 {
    c::lgamma(x)
}
/// The derivative of `lgamma`: reflection, then the recurrence up to 10, then the asymptotic series.
pub fn digamma(mut x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    let mut sum = 0.0;
    if x < 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        // The tangent of the fraction alone keeps large arguments exact.
        sum = -std::f64::consts::PI / (std::f64::consts::PI * (x - x.trunc())).tan();
        x = 1.0 - x;
    }
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z / 12.0))))));
    sum + x.ln() - 0.5 / x - series
}
