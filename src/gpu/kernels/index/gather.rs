//! `gather` (an index per element of the result) and `index_select` (an index per slice).

use super::checks::refuse_empty;
use super::words::{Words, repeated, zeroed_at};
use crate::error::Result;
use crate::gpu::fault::Check;
use crate::gpu::kernels::kernel::Kernel;
use crate::gpu::kernels::stage::stage_aliased;
use crate::gpu::kernels::template::Compute;
use crate::gpu::kernels::view::View;
use crate::layout::Dims;

const TEMPLATE: &str = include_str!("../../../../shaders/gather.wgsl");

/// `out[i][j][k] = input[i][index[i][j][k]][k]` for `dim` 1; `out` has the shape of `index`.
pub fn gather(input: &View, dim: usize, index: &View, out: &View) -> Result<()> {
    take(input, dim, index, out, Check::Reach)
}

/// `gather` by the classes of a loss, which are checked in its words.
pub fn pick_class(input: &View, dim: usize, class: &View, out: &View) -> Result<()> {
    take(input, dim, class, out, Check::Class)
}

/// Slices of `input` along `dim`, in the order of a one-dimensional `index`.
pub fn index_select(input: &View, dim: usize, index: &View, out: &View) -> Result<()> {
    let mut strides: Dims = out.shape.iter().map(|_| 0).collect();
    if let Some(s) = strides.get_mut(dim) {
        *s = index.strides.first().copied().unwrap_or(0);
    }
    take(input, dim, &View { shape: out.shape, strides: &strides, ..*index }, out, Check::Range)
}

fn take(input: &View, dim: usize, index: &View, out: &View, check: Check) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    refuse_empty(index, check, dim, input.dim(dim).0)?;
    stage_aliased(&mut [*input, *index], &[*out], &mut |views| {
        let (size, stride) = views[0].dim(dim);
        let (x, to) = (Words::new(&views[0]), Words::new(out));
        let shape = to.shape_with(out.shape);
        let index_strides = repeated(views[1].strides, x.scale);
        Kernel::new("gather", TEMPLATE, Compute::I32)
            .read("x", x.view())
            .index("index", View { shape: &shape, strides: &index_strides, ..views[1] })
            .write("out", to.view())
            .walk("x", &shape, &x.strides_with(&zeroed_at(views[0].strides, dim)))
            .walk("index", &shape, &index_strides)
            .walk("out", &shape, &to.strides)
            .number("count", shape.iter().product())?
            .number("step", stride * x.scale)?
            .check(check, dim, size)?
            .part("", "body", "write_out(at, read_x({{x}} + walk_x(e) + i * {{step}}));")
            .launch(shape.iter().product())
    })
}
