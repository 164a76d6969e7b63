//! The notation and width shared by all numbers of one printed tensor.
//!
//! Floats that are all integers are written `1.`; otherwise with a fixed number of digits, or in scientific notation if
//! the values span more than a factor of 1,000, exceed 1e8 or fall below 1e-4. Zeros, infinities and NaN affect neither
//! choice, nor (as in PyTorch) the width.

use crate::dtype::{DType, Scalar};
use std::fmt::Write;

/// The notation of a real tensor, or of the two components of a complex one.
pub enum Notation {
    Real(Column),
    Complex(Column, Column),
}

impl Notation {
    /// Characters per element: a complex one has a trailing `j`; its sign is part of the imaginary component's width.
    pub fn width(&self) -> usize {
        match self {
            Notation::Real(c) => c.width,
            Notation::Complex(re, im) => re.width + im.width + 1,
        }
    }
    pub fn push(&self, value: Scalar, out: &mut String) {
        match self {
            Notation::Real(c) => c.push(value, out),
            Notation::Complex(re, im) => {
                let (r, i) = match value {
                    Scalar::Complex(r, i) => (r, i),
                    v => (v.to_f64(), 0.0),
                };
                re.push(Scalar::Float(r), out);
                let mut part = String::new();
                im.push(Scalar::Float(i), &mut part);
                let part = part.trim_start();
                if !part.starts_with(['+', '-']) {
                    out.push('+');
                }
                out.push_str(part);
                out.push('j');
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// Integers and bools.
    Plain,
    /// Integer-valued floats: `3.`
    Whole,
    Fixed,
    Scientific,
}

/// Numbers in one notation, left-padded to one width.
pub struct Column {
    style: Style,
    precision: usize,
    width: usize,
}

impl Column {
    pub fn new(
        dtype: DType,
        values: impl Iterator<Item = Scalar> + Clone,
        precision: usize,
        sci_mode: Option<bool>,
    ) -> Column {
        let mut column = Column { style: Style::Plain, precision, width: 1 };
        if dtype.is_float() {
            let nonzero = values.map(Scalar::to_f64).filter(|v| v.is_finite() && *v != 0.0);
            column.style = float_style(nonzero.clone(), sci_mode);
            column.fit(nonzero.map(Scalar::Float));
        } else {
            column.fit(values);
        }
        column
    }

    fn fit(&mut self, values: impl Iterator<Item = Scalar>) {
        let mut text = String::new();
        for v in values {
            text.clear();
            self.write(v, &mut text);
            self.width = self.width.max(text.len());
        }
    }

    fn push(&self, value: Scalar, out: &mut String) {
        let start = out.len();
        self.write(value, out);
        let written = out.len() - start;
        if written < self.width {
            out.insert_str(start, &" ".repeat(self.width - written));
        }
    }

    /// Writing to a `String` cannot fail, so the results of `write!` are ignored.
    fn write(&self, value: Scalar, out: &mut String) {
        if self.style == Style::Plain {
            let _ = write!(out, "{value}");
            return;
        }
        let v = value.to_f64();
        if v.is_nan() {
            out.push_str("nan");
        } else if v.is_infinite() {
            out.push_str(if v > 0.0 { "inf" } else { "-inf" });
        } else {
            let p = self.precision;
            let _ = match self.style {
                Style::Scientific => return push_scientific(v, p, out),
                Style::Whole => write!(out, "{v:.0}."),
                _ => write!(out, "{v:.p$}"),
            };
        }
    }
}

/// Chooses the style from the finite non-zero values.
fn float_style(nonzero: impl Iterator<Item = f64>, sci_mode: Option<bool>) -> Style {
    let (mut low, mut high, mut whole, mut any) = (f64::INFINITY, 0.0f64, true, false);
    for v in nonzero {
        any = true;
        whole &= v == v.ceil();
        low = low.min(v.abs());
        high = high.max(v.abs());
    }
    let scientific = any && sci_mode.unwrap_or(high / low > 1000.0 || high > 1.0e8 || low < 1.0e-4);
    match (scientific, whole) {
        (true, _) => Style::Scientific,
        (false, true) => Style::Whole,
        (false, false) => Style::Fixed,
    }
}

/// Python's `e` format: a signed exponent of at least two digits.
fn push_scientific(v: f64, precision: usize, out: &mut String) {
    let text = format!("{v:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |d| ('-', d));
    let _ = write!(out, "{mantissa}e{sign}{digits:0>2}");
}
