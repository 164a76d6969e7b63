//! Triangles of matrices: one dispatch, an invocation per element.

use super::index::words::{TABLE, Words};
use super::kernel::Kernel;
use super::stage::stage_aliased;
use super::template::Compute;
use super::view::{View, fits, halves, part, resized};
use crate::error::Result;
use crate::gpu::driver::too_large;

const COPY: &str = "let keep = i32(unit / {{scale}} % {{cols}}) - i32(unit / {{scale}} / {{cols}} % {{rows}}) {{side}} bitcast<i32>({{diagonal}});
    write_out({{out}} + walk_out(unit), select(0, read_x({{x}} + walk_x(unit)), keep));";
const CLEAR: &str = "let keep = i32(unit / {{scale}} % {{cols}}) - i32(unit / {{scale}} / {{cols}} % {{rows}}) {{side}} bitcast<i32>({{diagonal}});
    if (!keep) { write_out({{out}} + walk_out(unit), 0); }";

/// Each matrix of `input` with zeros above the given diagonal, or with `upper` below it. `out` has the same shape and
/// dtype and may be `input` itself.
pub fn triangle(input: &View, diagonal: i64, upper: bool, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let rank = out.shape.len();
    let (rows, cols) = (out.shape[rank - 2], out.shape[rank - 1]);
    if out.numel() >= 1 << 31 || !fits(&[input, out]) {
        return by_halves(input, diagonal, upper, out);
    }
    // Beyond these every element is on one side.
    let diagonal = diagonal.clamp(-(rows as i64), cols as i64) as i32;
    let in_place = input.buffer.id() == out.buffer.id() && input.offset == out.offset && input.strides == out.strides;
    let launch = |x: Option<&View>| {
        let to = Words::new(out);
        let from = x.map(Words::new);
        let shape = to.shape_with(out.shape);
        let mut kernel = Kernel::new("triangle", TABLE, Compute::I32)
            .write("out", to.view())
            .walk("out", &shape, &to.strides)
            .number("units", shape.iter().product())?
            .number("scale", to.scale)?
            .number("rows", rows)?
            .number("cols", cols)?
            .bits("diagonal", diagonal as u32)
            .text("side", if upper { ">=" } else { "<=" })
            .text("combine", "v");
        if let Some(from) = &from {
            kernel = kernel.read("x", from.view()).walk("x", &shape, &from.strides);
        }
        kernel.text("body", if from.is_some() { COPY } else { CLEAR }).launch(shape.iter().product())
    };
    if in_place {
        return launch(None);
    }
    stage_aliased(&mut [*input], &[*out], &mut |views| launch(Some(&views[0])))
}

/// Both halves of what no binding reaches; the diagonal moves with the first row and column.
fn by_halves(input: &View, diagonal: i64, upper: bool, out: &View) -> Result<()> {
    let rank = out.shape.len();
    let reach = |d: &usize| out.shape[*d] * input.strides[*d].max(out.strides[*d]).max(1);
    let Some(d) = (0..rank).filter(|&d| out.shape[d] > 1).max_by_key(reach) else { return Err(too_large()) };
    for (start, n) in halves(out.shape[d]) {
        let shape = resized(out.shape, d, n);
        let moved = match rank - d {
            1 => diagonal.saturating_sub(start as i64),
            2 => diagonal.saturating_add(start as i64),
            _ => diagonal,
        };
        triangle(&part(input, d, start, &shape), moved, upper, &part(out, d, start, &shape))?;
    }
    Ok(())
}
