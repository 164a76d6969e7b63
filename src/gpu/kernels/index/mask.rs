//! Compaction by a mask: positions (`nonzero`), selection, and its inverse.
//!
//! A scan over the mask counts; each true element then writes its row-major position to the place of its count.
//! How many there are decides a shape, so this waits for the device.

use super::words::{TABLE, Words, repeated};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::driver::GpuBuffer;
use crate::gpu::kernels::element::compute_of;
use crate::gpu::kernels::kernel::Kernel;
use crate::gpu::kernels::map::copy;
use crate::gpu::kernels::scan::cumulative;
use crate::gpu::kernels::stage::stage_aliased;
use crate::gpu::kernels::template::Compute;
use crate::gpu::kernels::view::{Input, View};
use crate::kinds::Scan;
use crate::layout::{Dims, contiguous_strides};

/// The row-major positions of the true elements of a mask, in order.
pub struct Places {
    pub count: usize,
    positions: GpuBuffer,
}

impl Places {
    /// Finds the elements of `mask` that are not zero (NaN is not). Waits for the device.
    pub fn find(mask: &View) -> Result<Places> {
        mask.require_own()?;
        let n = mask.numel();
        if n == 0 {
            return Ok(Places { count: 0, positions: mask.scratch(4)? });
        }
        let truth = mask.scratch(n)?;
        let strides = contiguous_strides(mask.shape);
        let truth = View { buffer: &truth, dtype: DType::Bool, shape: mask.shape, strides: &strides, offset: 0 };
        copy(&Input::View(*mask), &truth)?;
        let (shape, unit) = ([n], [1]);
        let flat = View { shape: &shape, strides: &unit, ..truth };
        let counts = mask.scratch(n * 4)?;
        let counts = View { buffer: &counts, dtype: DType::I32, ..flat };
        cumulative(Scan::Sum, &flat, 0, &counts, None)?;
        let mut last = [0u8; 4];
        // SAFETY: `last` is four bytes.
        unsafe { counts.buffer.read((n - 1) * 4, last.as_mut_ptr(), 4)? };
        let count = i32::from_ne_bytes(last) as usize;
        let positions = mask.scratch(count.max(1) * 4)?;
        if count > 0 {
            Kernel::new("places", TABLE, Compute::I32)
                .read("mask", flat)
                .read("counts", counts)
                .write("out", View { buffer: &positions, dtype: DType::I32, ..flat })
                .number("units", n)?
                .text("combine", "v")
                .part("", "body", "if (read_mask(unit) != 0) { write_out(u32(read_counts(unit)) - 1u, i32(unit)); }")
                .launch(n)?;
        }
        Ok(Places { count, positions })
    }
    fn view<'a>(&'a self, shape: &'a [usize]) -> View<'a> {
        View { buffer: &self.positions, dtype: DType::I32, shape, strides: &[1], offset: 0 }
    }
}

/// The coordinates of the places in a mask of `shape`: `out` is `[count, ndim]`, of int64.
pub fn nonzero(places: &Places, shape: &[usize], out: &View) -> Result<()> {
    let units = places.count * shape.len();
    if units == 0 {
        return Ok(());
    }
    let count = [places.count];
    let mut kernel = Kernel::new("nonzero", TABLE, Compute::I32)
        .read("places", places.view(&count))
        .write_index("out", *out)
        .walk("out", out.shape, out.strides)
        .number("units", units)?
        .number("rank", shape.len())?
        .text("combine", "v");
    // Row-major strides and sizes, looked up by a chain of selects: parameters have no dynamic index.
    let (mut stride, mut size) = ("1u".to_string(), "1u".to_string());
    const STRIDES: [&str; 12] = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11"];
    const SIZES: [&str; 12] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11"];
    let dense = contiguous_strides(shape);
    if shape.len() > SIZES.len() {
        return Err(crate::error::Error::not_implemented("nonzero on the GPU takes at most 12 dimensions"));
    }
    for d in 0..shape.len() {
        kernel = kernel.number(STRIDES[d], dense[d])?.number(SIZES[d], shape[d])?;
        stride = format!("select({stride}, {{{{{}}}}}, d == {d}u)", STRIDES[d]);
        size = format!("select({size}, {{{{{}}}}}, d == {d}u)", SIZES[d]);
    }
    let body = format!(
        "let d = unit % {{{{rank}}}};
    let at = u32(read_places(unit / {{{{rank}}}})) / {stride} % {size};
    write_out({{{{out}}}} + walk_out(unit), i32(at));"
    );
    kernel.text("body", body).launch(units)
}

/// The elements of `input` (as broadcast to the mask's shape) at the places; `out` is `[count]`.
pub fn masked_select(input: &View, places: &Places, out: &View) -> Result<()> {
    if places.count == 0 {
        return Ok(());
    }
    let count = [places.count];
    stage_aliased(&mut [*input], &[*out], &mut |views| {
        let (x, to) = (Words::new(&views[0]), Words::new(out));
        let shape = to.shape_with(&count);
        let units = shape.iter().product();
        Kernel::new("masked_select", TABLE, Compute::I32)
            .read("x", x.view())
            .read("places", places.view(&count))
            .write("out", to.view())
            .walk("x", input.shape, &views[0].strides.iter().map(|s| s * x.scale).collect::<Dims>())
            .walk("places", &shape, &repeated(&[1], x.scale))
            .walk("out", &shape, &to.strides)
            .number("units", units)?
            .number("scale", x.scale)?
            .text("combine", "v")
            .part(
                "",
                "body",
                "let from_x = walk_x(u32(read_places(walk_places(unit)))) + unit % {{scale}};
    write_out({{out}} + walk_out(unit), read_x({{x}} + from_x));",
            )
            .launch(units)
    })
}

/// Writes the first `count` elements of `source` (row-major) to the places of `out`, which has the mask's shape.
pub fn masked_scatter(out: &View, places: &Places, source: &View) -> Result<()> {
    if places.count == 0 {
        return Ok(());
    }
    let count = [places.count];
    stage_aliased(&mut [*source], &[*out], &mut |views| {
        Kernel::new("masked_scatter", TABLE, compute_of(out.dtype)?)
            .read("source", views[0])
            .read_as("places", places.view(&count), Compute::I32)
            .write("out", *out)
            .walk("source", views[0].shape, views[0].strides)
            .walk("out", out.shape, out.strides)
            .number("units", places.count)?
            .text("combine", "v")
            .part(
                "",
                "body",
                "write_out({{out}} + walk_out(u32(read_places(unit))), read_source({{source}} + walk_source(unit)));",
            )
            .launch(places.count)
    })
}
