//! Several tensors changed in one pass over memory: optimizer steps.

use super::element::compute_of;
use super::kernel::Kernel;
use super::view::View;
use crate::dtype::Scalar;
use crate::error::Result;

const TEMPLATE: &str = include_str!("../../../shaders/update.wgsl");

/// What an optimizer does to its parameter and state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Adam,
    AmsGrad,
    Adagrad,
    Sgd,
    SgdMomentum,
}

/// WGSL over the tensors and, in double braces, the numbers. `b` is the buffer of the momentum, which the first step
/// fills; `keep` and `ahead` are one or zero.
const fn formula(step: Step) -> (&'static str, &'static str) {
    match step {
        Step::Adam => (
            "adam",
            "let old = x * {{shrink}};
    g = g * {{sign}};
    if ({{decay}} != 0.0) { g += old * {{decay}}; }
    m += {{w1}} * (g - m);
    v = v * {{b2}} + {{w2}} * g * g;
    x = old + {{size}} * m / (sqrt_(v) / {{root}} + {{eps}});",
        ),
        Step::AmsGrad => (
            "amsgrad",
            "let old = x * {{shrink}};
    g = g * {{sign}};
    if ({{decay}} != 0.0) { g += old * {{decay}}; }
    m += {{w1}} * (g - m);
    v = v * {{b2}} + {{w2}} * g * g;
    u = max_(u, v);
    x = old + {{size}} * m / (sqrt_(u) / {{root}} + {{eps}});",
        ),
        Step::Adagrad => (
            "adagrad",
            "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    s += g * g;
    x += {{rate}} * g / (sqrt_(s) + {{eps}});",
        ),
        Step::Sgd => (
            "sgd",
            "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    x += {{lr}} * g;",
        ),
        Step::SgdMomentum => (
            "sgd with momentum",
            "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    if ({{keep}} != 0.0) { b = b * {{momentum}} + {{kept}} * g; } else { b = g; }
    if ({{ahead}} != 0.0) { g += {{momentum}} * b; } else { g = b; }
    x += {{lr}} * g;",
        ),
    }
}

/// Takes a step at each element of tensors of one shape: `changed` are read and written (each in memory of its own),
/// `read` is only read. Computed in the compute type of the first.
pub fn update(
    step: Step,
    changed: &[(&'static str, View)],
    read: (&'static str, View),
    numbers: &[(&'static str, f64)],
) -> Result<()> {
    let (name, body) = formula(step);
    let first = changed[0].1;
    if first.numel() == 0 {
        return Ok(());
    }
    let mut kernel = Kernel::new("update", TEMPLATE, compute_of(first.dtype)?).number("units", first.numel())?;
    let (mut reads, mut writes) = (String::new(), String::new());
    for (i, (name, view)) in changed.iter().chain([&read]).enumerate() {
        view.require_own()?;
        let at = format!("{{{{{name}}}}} + walk_{name}(e)");
        reads += &format!("var {name} = read_{name}({at});\n    ");
        if i < changed.len() {
            writes += &format!("write_{name}({at}, {name});\n    ");
        }
        kernel = if i < changed.len() { kernel.write(name, *view) } else { kernel.read(name, *view) };
        kernel = kernel.walk(name, view.shape, view.strides);
    }
    for (name, value) in numbers {
        kernel = kernel.scalar(name, Scalar::Float(*value));
    }
    kernel.part(name, "body", format!("{reads}{body}\n    {writes}")).launch(first.numel())
}
