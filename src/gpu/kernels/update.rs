//! Several tensors changed in one pass over memory: optimizer steps.

use super::element::compute_of;
use super::kernel::Kernel;
use super::view::View;
use crate::dtype::Scalar;
use crate::error::Result;
use std::fmt::Write;

const TEMPLATE: &str = include_str!("../../../shaders/update.wgsl");

/// Takes a step at each element of tensors of one shape: `changed` are read and written (each in memory of its own),
/// `read` is only read. Computed in the compute type of the first.
///
/// `body` is WGSL over the names of the tensors and, in double braces, those of the numbers; `name` stands for it.
pub fn update(
    (name, body): (&'static str, &'static str),
    changed: &[(&'static str, View)],
    read: (&'static str, View),
    numbers: &[(&'static str, f64)],
) -> Result<()> {
    let first = changed[0].1;
    if first.numel() == 0 {
        return Ok(());
    }
    let mut kernel = Kernel::new("update", TEMPLATE, compute_of(first.dtype)?).number("units", first.numel())?;
    for (i, (name, view)) in changed.iter().chain([&read]).enumerate() {
        view.require_own()?;
        kernel = if i < changed.len() { kernel.write(name, *view) } else { kernel.read(name, *view) };
        kernel = kernel.walk(name, view.shape, view.strides);
    }
    for (name, value) in numbers {
        kernel = kernel.scalar(name, Scalar::Float(*value));
    }
    let written = || {
        let (mut reads, mut writes) = (String::new(), String::new());
        for (i, (name, _)) in changed.iter().chain([&read]).enumerate() {
            let at = format!("{{{{{name}}}}} + walk_{name}(e)");
            let _ = write!(reads, "var {name} = read_{name}({at});\n    ");
            if i < changed.len() {
                let _ = write!(writes, "write_{name}({at}, {name});\n    ");
            }
        }
        format!("{reads}{body}\n    {writes}")
    };
    kernel.made(name, "body", &written).launch(first.numel())
}
