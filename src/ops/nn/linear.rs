//! Linear layers and dropout.

use crate::dtype::Scalar;
use crate::error::{Class, Error, Result};
use crate::kinds::Draw;
use crate::op::generator::default_generator;
use crate::op::*;
use crate::ops::elementwise::arith::MUL;
use crate::ops::linalg::matmul::MATMUL;
use crate::ops::linalg::matmul_add::ADDMM;
use crate::ops::random::distributions::draw;
use crate::ops::view::reshape::UNSAFE_VIEW;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&LINEAR, &BILINEAR, &DROPOUT, &DROPOUT_, &F_DROPOUT, &DROPOUT_MASK];

pub static LINEAR: Op = Op {
    sig: sig("nn.functional.linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"),
    doc: "`input @ weight.T + bias`: [.., k] and [m, k] give [.., m].",
    forms: FO,
    body: decompose(linear),
    vjp: Vjp::Composite,
    samples: &[
        "f32[2,3], f32[4,3], f32[4]",
        "f32[2,3], f32[4,3]",
        "f32[2,2,3], f32[4,3], f32[4]",
        "f32[3], f32[4,3], f32[4]",
        "f32[2,3], f32[3]",
        "f32[2,2,3], f32[4,3]",
    ],
    errors: &[
        ("f32[2,3], f32[4,2]", "RuntimeError", "cannot be multiplied"),
        ("f32[2,3], f32[4,2], f32[4]", "RuntimeError", "cannot be multiplied"),
    ],
    out_dtype: Some(OutDType::Same),
    ..OP
};

fn linear(c: &Call) -> Result<Outputs> {
    let (x, w) = (c.tensor(0)?, Term::from(c.tensor("weight")?).t());
    let Some(bias) = c.opt_tensor("bias") else { return MATMUL.calls((x, w)) };
    if x.ndim() == 2 {
        return ADDMM.calls((bias, x, w));
    }
    if x.ndim() == 0 || !x.is_contiguous() || c.tensor("weight")?.ndim() != 2 {
        return (MATMUL.call((x, w)) + bias).outputs();
    }
    // One large product is faster than a batch of small ones.
    let mut sizes = Term::from(x).sizes();
    let k = sizes.pop().unwrap_or(1);
    let rows = sizes.iter().product::<i64>();
    sizes.push(c.tensor("weight")?.size(0) as i64);
    UNSAFE_VIEW.calls((ADDMM.call((bias, Term::from(x).reshape(&[rows, k]), w)), sizes))
}

pub static BILINEAR: Op = Op {
    sig: sig("nn.functional.bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor"),
    doc: "`x1^T A x2 + b` for each of the `m` matrices A of `weight`: [.., i], [.., j] and [m, i, j] give [.., m].",
    aliases: &["bilinear"],
    forms: F,
    body: decompose(bilinear),
    vjp: Vjp::Composite,
    samples: &[
        "f32[4,2], f32[4,3], f32[5,2,3], f32[5]",
        "f32[4,2], f32[4,3], f32[5,2,3]",
        "f32[2,4,2], f32[2,4,3], f32[1,2,3], f32[1]",
        "f32[2], f32[3], f32[5,2,3]",
    ],
    errors: &[
        ("f32[4,2], f32[4,3,3], f32[5,2,3]", "RuntimeError", "bilinear(): input dimensions do not match: got 2 and 3"),
        (
            "f32[4,2], f32[5,3], f32[5,2,3]",
            "RuntimeError",
            "bilinear(): input batch dimensions do not match at dim 0: got 4 and 5",
        ),
        (
            "f32[4,3], f32[4,3], f32[5,2,3]",
            "RuntimeError",
            "bilinear(): input1 size does not match weight size: got 3 but expected 2",
        ),
        (
            "f32[4,2], f32[4,2], f32[5,2,3]",
            "RuntimeError",
            "bilinear(): input2 size does not match weight size: got 2 but expected 3",
        ),
        (
            "f32[4,2], f32[4,3], f32[5,2,3], f32[4]",
            "RuntimeError",
            "bilinear(): bias size does not match weight size: got 4 but expected 5",
        ),
    ],
    ..OP
};

fn bilinear(c: &Call) -> Result<Outputs> {
    let [a, b, w] = [c.tensor("input1")?, c.tensor("input2")?, c.tensor("weight")?];
    let wrong = |text: String| Err(Error::runtime(format!("bilinear(): {text}")));
    let (n, last) = (a.ndim(), a.ndim().wrapping_sub(1));
    if n != b.ndim() || (n == 0 && w.ndim() > 0) {
        return wrong(format!("input dimensions do not match: got {n} and {}", b.ndim()));
    }
    if let Some(d) = (0..last).find(|&d| a.size(d) != b.size(d)) {
        return wrong(format!("input batch dimensions do not match at dim {d}: got {} and {}", a.size(d), b.size(d)));
    }
    if w.ndim() == 0 {
        return Err(Error::index("Dimension specified as 1 but tensor has no dimensions"));
    }
    let &[m, i, j] = w.shape() else { return wrong(format!("expected a weight of 3 dimensions, got {}", w.ndim())) };
    for (name, x, wanted) in [("input1", a, i), ("input2", b, j)] {
        if x.size(last) != wanted {
            return wrong(format!(
                "{name} size does not match weight size: got {} but expected {wanted}",
                x.size(last)
            ));
        }
    }
    if let Some(t) = c.opt_tensor("bias")
        && (t.ndim() != 1 || t.size(0) != m)
    {
        return wrong(format!(
            "bias size does not match weight size: got {} but expected {m}",
            t.shape().first().unwrap_or(&1)
        ));
    }
    let mut sizes = Term::from(a).sizes();
    sizes.pop();
    let rows = sizes.iter().product::<i64>();
    sizes.push(m as i64);
    let [m, i, j] = [m, i, j].map(|n| n as i64);
    let left = Term::from(a).reshape(&[rows, i]).mm(Term::from(w).transpose(0, 1).reshape(&[i, m * j]));
    let right = Term::from(b).reshape(&[rows, j]).unsqueeze(-1);
    let out = MATMUL.call((left.reshape(&[rows, m, j]), right)).squeeze(-1).reshape(&sizes);
    match c.opt_tensor("bias") {
        Some(bias) => (out + bias).outputs(),
        None => out.outputs(),
    }
}

/// A mask of zeros (with probability `p`) and `1 / (1 - p)`.
pub static DROPOUT_MASK: Op = Op {
    sig: sig("_dropout_mask(Tensor self, float p) -> Tensor"),
    doc: "For each element 0 with probability `p`, else `1 / (1 - p)`, from the default generator.",
    forms: HIDDEN,
    body: kernel(|c| Ok(smallvec![Spec::following(c.tensor(0)?)]), mask, Some(mask)),
    vjp: Vjp::None("random"),
    samples: &["f32[2,3], 0.5"],
    errors: &[("'a', 0.5", "TypeError", "must be Tensor")],
    reference: "shape",
    batch: Batching::Leading,
    ..OP
};

fn mask(c: &Call, out: &[Tensor]) -> Result<()> {
    let keep = 1.0 - c.float("p")?;
    let value = if keep > 0.0 { 1.0 / keep } else { 0.0 };
    draw(&out[0], Draw::Mask { keep, value }, default_generator(out[0].device()))
}

fn dropout(x: &Tensor, p: f64, train: bool, inplace: bool, refusal: Class) -> Result<Outputs> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::new(
            refusal,
            format!("dropout probability has to be between 0 and 1, but got {}", Scalar::Float(p)),
        ));
    }
    if !train || p == 0.0 || x.numel() == 0 {
        return Ok(smallvec![x.clone()]);
    }
    if !x.dtype().is_differentiable() {
        return Err(Error::runtime(
            "result type Float can't be cast to the desired output type ".to_string() + x.dtype().scalar_type_name(),
        ));
    }
    let mask = DROPOUT_MASK.call((x, p)).ok()?;
    if inplace { Ok(smallvec![MUL.call_inplace((x, &mask))?]) } else { MUL.calls((x, &mask)) }
}

pub static DROPOUT: Op = Op {
    sig: sig("dropout(Tensor input, float p, bool train) -> Tensor"),
    doc: "Zeroes elements with probability `p` and scales the others by `1 / (1 - p)`, where `train` is set.",
    forms: F,
    body: decompose(|c| dropout(c.tensor(0)?, c.float("p")?, c.flag("train"), false, Class::Runtime)),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], 0.0, True", "f32[2,3], 0.5, False", "f32[2,3], 1.0, True"],
    errors: &[("f32[2], 1.5, True", "RuntimeError", "between 0 and 1")],
    ..OP
};

pub static DROPOUT_: Op = Op {
    sig: sig("dropout_(Tensor! input, float p, bool train) -> Tensor"),
    doc: "`dropout` in place.",
    forms: Forms(Forms::FUNCTION | Forms::ONLY_INPLACE),
    body: decompose(|c| dropout(c.tensor(0)?, c.float("p")?, c.flag("train"), false, Class::Runtime)),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], 0.0, True", "f32[2,3], 0.5, False", "f32[2,3], 1.0, True"],
    errors: &[("f32[2], 1.5, True", "RuntimeError", "between 0 and 1")],
    ..OP
};

pub static F_DROPOUT: Op = Op {
    sig: sig("nn.functional.dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False) -> Tensor"),
    doc: "Zeroes elements with probability `p` and scales the others by `1 / (1 - p)`, where `training` is set.",
    forms: F,
    body: decompose(|c| dropout(c.tensor(0)?, c.float("p")?, c.flag("training"), c.flag("inplace"), Class::Value)),
    vjp: Vjp::Composite,
    samples: &["f32[2,3], 0.0", "f32[2,3], 0.5, False", "f32[2,3], 1.0"],
    errors: &[("f32[2], 1.5", "ValueError", "between 0 and 1")],
    ..OP
};
