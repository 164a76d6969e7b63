//! `unfold` (im2col) and `fold` (col2im): the windows of an image as columns, and the sums of columns back into an image.
//!
//! The windows are one strided view of the padded image, `[batch, channels, kernel, kernel, rows, columns]`. Unfolding
//! copies it; folding adds to it one place of the kernel after the other, since the windows of one place do not overlap.

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, Show};
use crate::layout::{Dims, Layout, checked_numel};
use crate::op::*;
use crate::ops::elementwise::arith::ADD;
use crate::ops::support::promotion::no_kernel;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&UNFOLD, &FOLD];

/// How the windows lie: for each of two dimensions the sizes of image and kernel, the steps, and the number of windows.
struct Windows {
    image: [i64; 2],
    kernel: [i64; 2],
    dilation: [i64; 2],
    padding: [i64; 2],
    stride: [i64; 2],
    count: [i64; 2],
}

/// `(2, 3)`, as PyTorch's messages show a pair.
fn pair(p: [i64; 2]) -> String {
    format!("({}, {})", p[0], p[1])
}

impl Windows {
    /// Reads kernel size, dilation, padding and stride from the arguments.
    fn of(c: &impl Arguments, image: [i64; 2]) -> Result<Windows> {
        let each = |name: &str| match c.ints(name)? {
            &[n] => Ok([n, n]),
            &[a, b] => Ok([a, b]),
            list => Err(Error::runtime(format!("It is expected {name} equals to 2, but got size {}", list.len()))),
        };
        let mut w = Windows {
            image,
            kernel: each("kernel_size")?,
            dilation: each("dilation")?,
            padding: each("padding")?,
            stride: each("stride")?,
            count: [0; 2],
        };
        let refuse = |name: &str, what: &str, [h, x]: [i64; 2]| {
            Err(Error::runtime(format!("{name} should be {what}, but got {0}_height: {h} {0}_width: {x}", {
                // PyTorch abbreviates two of the names.
                match name {
                    "kernel size" => "kernel",
                    "padding" => "pad",
                    other => other,
                }
            })))
        };
        for (name, p) in [("kernel size", w.kernel), ("dilation", w.dilation), ("stride", w.stride)] {
            if p.iter().any(|&n| n <= 0) {
                return refuse(name, "greater than zero", p);
            }
        }
        if w.padding.iter().any(|&n| n < 0) {
            return refuse("padding", "non-negative", w.padding);
        }
        for d in 0..2 {
            let reach = (w.kernel[d] - 1).saturating_mul(w.dilation[d]).saturating_add(1);
            w.count[d] = w.padded(d).saturating_sub(reach).div_euclid(w.stride[d]) + 1;
        }
        Ok(w)
    }
    /// The size of dimension `d` with the zeros at both ends.
    fn padded(&self, d: usize) -> i64 {
        self.image[d].saturating_add(self.padding[d].saturating_mul(2))
    }
    fn places(&self) -> i64 {
        self.kernel[0].saturating_mul(self.kernel[1])
    }
    fn blocks(&self) -> i64 {
        self.count[0].saturating_mul(self.count[1])
    }
    /// The windows of a padded image `[batch, channels, height, width]`.
    fn view(&self, padded: &Layout) -> Layout {
        let (mut shape, mut strides): (Dims, Dims) = (padded.shape[..2].into(), padded.strides[..2].into());
        for (sizes, steps) in [(self.kernel, self.dilation), (self.count, self.stride)] {
            for d in 0..2 {
                shape.push(sizes[d] as usize);
                // Where there is one element, the step to the next, which may be beyond any number, is not taken.
                strides.push(if sizes[d] > 1 { padded.strides[2 + d] * steps[d] as usize } else { 0 });
            }
        }
        Layout { shape, strides, offset: padded.offset }
    }
    /// Columns `[batch, channels * places, blocks]` in the shape of the view.
    fn columns(&self, t: &Tensor, batched: bool) -> Tensor {
        let l = t.layout();
        let (batch, at) = if batched { ((l.shape[0], l.strides[0]), 1) } else { ((1, 0), 0) };
        let (row, col) = (l.strides[at], l.strides[at + 1]);
        let [kh, kw, h, w] = [self.kernel[0], self.kernel[1], self.count[0], self.count[1]].map(|n| n.max(0) as usize);
        let channels = l.shape[at] / (kh * kw);
        let shape: Dims = smallvec![batch.0, channels, kh, kw, h, w];
        let strides: Dims = smallvec![batch.1, row * kh * kw, row * kw, row, col * w, col];
        t.with_layout(Layout { shape, strides, offset: l.offset })
    }
}

/// The last dimensions of an image, and a layout with a batch.
fn batched(l: &Layout) -> Layout {
    if l.ndim() == 4 { l.clone() } else { l.unsqueeze(0) }
}

fn check_dtype(t: &Tensor, name: &str) -> Result<()> {
    let d = t.dtype();
    if d.is_float() || d.is_complex() || d == DType::Bool { Ok(()) } else { Err(no_kernel(name, d)) }
}

fn windows_of_image(c: &Call) -> Result<Windows> {
    let t = c.tensor(0)?;
    let shape = t.shape();
    if shape.is_empty() {
        return Err(Error::index("Dimension specified as 1 but tensor has no dimensions"));
    }
    if !matches!(shape.len(), 3 | 4) || shape[usize::from(shape.len() == 4)..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}",
            Show(shape)
        )));
    }
    let [h, w] = [2, 1].map(|i| shape[shape.len() - i] as i64);
    let windows = Windows::of(c, [h, w])?;
    if windows.count.iter().any(|&n| n < 1) {
        return Err(Error::runtime(format!(
            "Given input with spatial size {}, kernel_size={}, dilation={}, padding={}, calculated shape of the array of sliding blocks as {}, but its components must be at least one.",
            pair([h, w]),
            pair(windows.kernel),
            pair(windows.dilation),
            pair(windows.padding),
            pair(windows.count)
        )));
    }
    Ok(windows)
}

fn unfolded(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let w = windows_of_image(c)?;
    check_dtype(t, "im2col_out_cpu")?;
    let lead = t.ndim() - 3;
    let rows = (t.size(lead) as i64).saturating_mul(w.places());
    let mut shape: Dims = t.shape()[..lead].into();
    shape.extend([rows as usize, w.blocks() as usize]);
    checked_numel(&shape)?;
    Ok(Spec::one(&shape, t.dtype(), t.device()))
}

/// Zeros `[batch, channels, height, width]` with room for the padding, and the place of the image in it.
fn with_room(t: &Tensor, lead: [usize; 2], w: &Windows) -> Result<(Tensor, Tensor)> {
    let shape = [lead[0], lead[1], w.padded(0) as usize, w.padded(1) as usize];
    let room = Tensor::zeros(&shape, t.dtype(), t.device())?;
    let inner =
        (0..2).fold(room.layout().clone(), |l, d| l.slice(2 + d, (w.padding[d] as usize, w.image[d] as usize, 1)));
    let inner = room.with_layout(inner);
    Ok((room, inner))
}

fn unfold(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if out[0].numel() == 0 {
        return Ok(());
    }
    let w = windows_of_image(c)?;
    let image = t.with_layout(batched(t.layout()));
    let padded = if w.padding == [0, 0] {
        image
    } else {
        let (room, inner) = with_room(t, [image.size(0), image.size(1)], &w)?;
        inner.copy_raw(&image)?;
        room
    };
    let view = padded.with_layout(w.view(padded.layout()));
    w.columns(&out[0], t.ndim() == 4).copy_raw(&view)
}

pub static UNFOLD: Op = Op {
    sig: sig(
        "nn.functional.unfold(Tensor input, int[1] kernel_size, int[1] dilation=1, int[1] padding=0, int[1] stride=1) -> Tensor",
    ),
    doc: "The windows of an image `[batch, channels, height, width]`, or one without the batch, as columns `[batch, channels * kernel, windows]` (im2col). Zeros are padded to both ends; the number of windows is the product of `(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1`.",
    forms: F,
    body: kernel(unfolded, unfold, Some(unfold)),
    vjp: Vjp::Each(&[d(0, 0, |c| {
        let image: Ints = c.sizes(0)[c.ndim(0) - 2..].into();
        FOLD.call(steps(c, c.g(), Some(image)))
    })]),
    node: "Im2ColBackward0",
    keeps: Some(
        "dilation kernel_size padding self_sym_argsize_minus_1=input_sym_argsize_minus_1 self_sym_argsize_minus_2=input_sym_argsize_minus_2 stride",
    ),
    samples: &[
        "f32[2,2,4,5], (2, 3)",
        "f32[1,2,5,5], 2, 2, 1, 2",
        "f32[3,4,4], (2, 2), (1, 2), (0, 1), (2, 1)",
        "c64[1,1,3,3], 2",
        "b8[1,1,3,3], 2, padding=1",
    ],
    errors: &[
        ("f32[4,5], 2", "RuntimeError", "Expected 3D or 4D (batch mode) tensor"),
        ("f32[1,2,0,5], 2", "RuntimeError", "Expected 3D or 4D (batch mode) tensor"),
        ("f32[1,2,4,5], (2, 2, 2)", "RuntimeError", "It is expected kernel_size equals to 2, but got size 3"),
        ("f32[1,2,4,5], (0, 2)", "RuntimeError", "kernel_height: 0 kernel_width: 2"),
        ("f32[1,2,4,5], 2, 0", "RuntimeError", "dilation should be greater than zero"),
        ("f32[1,2,4,5], 2, 1, -1", "RuntimeError", "padding should be non-negative"),
        ("f32[1,2,4,5], 2, 1, 0, 0", "RuntimeError", "stride should be greater than zero"),
        ("f32[1,2,4,5], 6", "RuntimeError", "components must be at least one"),
        ("f32[1,2,4,5], 2, 1, 4611686018427387904", "RuntimeError", "overflowed"),
        ("i64[1,2,4,5], 2", "NotImplementedError", "not implemented for 'Long'"),
    ],
    batch: Batching::Fold(4, &[0]),
    ..OP
};

/// The arguments of the adjoint: the gradient, the size of the image where the op takes it, and the four steps.
fn steps(c: &VjpCtx, g: Term, image: Option<Ints>) -> Args<'static> {
    let value = |t: Term| t.into_arg().unwrap_or_default();
    let mut args: Args = smallvec![value(g)];
    args.extend(image.map(Value::Ints));
    args.extend(["kernel_size", "dilation", "padding", "stride"].map(|name| Value::Ints(c.ints(name).into())));
    args
}

fn windows_of_columns(c: &Call) -> Result<Windows> {
    let t = c.tensor(0)?;
    let image = match c.ints("output_size")? {
        &[n] => [n, n],
        &[h, w] => [h, w],
        list => {
            return Err(Error::runtime(format!("It is expected output_size equals to 2, but got size {}", list.len())));
        }
    };
    let w = Windows::of(c, image)?;
    let shape = t.shape();
    if !matches!(shape.len(), 2 | 3) || shape[shape.len() - 2..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {}",
            Show(shape)
        )));
    }
    let [rows, blocks] = [2, 1].map(|i| shape[shape.len() - i] as i64);
    if rows % w.places() != 0 {
        return Err(Error::runtime(format!(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={rows} and kernel_size={}.",
            pair(w.kernel)
        )));
    }
    let given = || {
        format!(
            "Given output_size={}, kernel_size={}, dilation={}, padding={}, stride={}, ",
            pair(w.image),
            pair(w.kernel),
            pair(w.dilation),
            pair(w.padding),
            pair(w.stride)
        )
    };
    if blocks != w.blocks() {
        return Err(Error::runtime(format!(
            "{}expected size of input's dimension 2 to match the calculated number of sliding blocks {} * {} = {}, but got input.size(2)={blocks}.",
            given(),
            w.count[0],
            w.count[1],
            w.blocks()
        )));
    }
    if w.count.iter().any(|&n| n < 1) {
        return Err(Error::runtime(format!(
            "{}calculated shape of the array of sliding blocks as {}, which is too small (non-positive)",
            given(),
            pair(w.count)
        )));
    }
    if image.iter().any(|&n| n < 1) {
        return Err(Error::runtime(format!(
            "Expected output spatial size to be positive, but got: output_size={}.",
            pair(image)
        )));
    }
    Ok(w)
}

fn folded(c: &Call) -> Result<Specs> {
    let t = c.tensor(0)?;
    let w = windows_of_columns(c)?;
    check_dtype(t, "col2im_out_cpu")?;
    let lead = t.ndim() - 2;
    let mut shape: Dims = t.shape()[..lead].into();
    shape.push(t.size(lead) / w.places() as usize);
    shape.extend(w.image.map(|n| n as usize));
    checked_numel(&shape)?;
    Ok(Spec::one(&shape, t.dtype(), t.device()))
}

fn fold(c: &Call, out: &[Tensor]) -> Result<()> {
    let t = c.tensor(0)?;
    if out[0].numel() == 0 {
        return Ok(());
    }
    let w = windows_of_columns(c)?;
    let image = out[0].with_layout(batched(out[0].layout()));
    let unpadded = w.padding == [0, 0];
    let (sums, inner) = if unpadded {
        image.fill_raw(Scalar::Int(0))?;
        (image.clone(), image.clone())
    } else {
        with_room(t, [image.size(0), image.size(1)], &w)?
    };
    let (windows, columns) = (sums.with_layout(w.view(sums.layout())), w.columns(t, t.ndim() == 3));
    for i in 0..w.kernel[0] as usize {
        for j in 0..w.kernel[1] as usize {
            let at = |t: &Tensor| t.with_layout(t.layout().select(3, j).select(2, i));
            ADD.call_inplace((&at(&windows), &at(&columns)))?;
        }
    }
    if unpadded { Ok(()) } else { image.copy_raw(&inner) }
}

pub static FOLD: Op = Op {
    sig: sig(
        "nn.functional.fold(Tensor input, int[1] output_size, int[1] kernel_size, int[1] dilation=1, int[1] padding=0, int[1] stride=1) -> Tensor",
    ),
    doc: "An image `[batch, channels, height, width]` from columns `[batch, channels * kernel, windows]`: what `unfold` would read of one element is added up (col2im).",
    forms: F,
    body: kernel(folded, fold, Some(fold)),
    vjp: Vjp::Each(&[d(0, 0, |c| UNFOLD.call(steps(c, c.g(), None)))]),
    node: "Col2ImBackward0",
    keeps: Some("dilation kernel_size padding stride"),
    samples: &[
        "f32[2,8,6], (3, 4), 2",
        "f32[1,8,9], (5, 5), 2, 2, 1, 2",
        "f32[4,4], (3, 3), (2, 2)",
        "c64[1,4,4], 3, 2",
        "b8[1,4,4], 3, 2",
    ],
    errors: &[
        ("f32[8], (3, 4), 2", "RuntimeError", "Expected 2D or 3D (batch mode) tensor"),
        ("f32[1,8,6], (3, 4, 5), 2", "RuntimeError", "It is expected output_size equals to 2, but got size 3"),
        ("f32[1,7,6], (3, 4), 2", "RuntimeError", "to be divisible by the product of kernel_size"),
        ("f32[1,8,5], (3, 4), 2", "RuntimeError", "number of sliding blocks 2 * 3 = 6, but got input.size(2)=5"),
        ("f32[1,8,6], (3, 4), (2, 0)", "RuntimeError", "kernel size should be greater than zero"),
        ("f32[1,8,1], (1, 1), (2, 2), 1, 0, 2", "RuntimeError", "sliding blocks"),
        ("i64[1,8,6], (3, 4), 2", "NotImplementedError", "not implemented for 'Long'"),
    ],
    batch: Batching::Fold(3, &[0]),
    ..OP
};
