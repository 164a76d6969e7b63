//! Sums of products by index letters: `einsum("bij,bjk->bik", a, b)`.
//!
//! Every operand gets one dimension per letter, those of the output first, of size one if it lacks the letter. Pairs
//! are contracted from the left, each as a batch of matrix products; a letter is summed with its last operand.

use super::matmul::BMM;
use crate::error::{Error, Result};
use crate::layout::Dims;
use crate::op::*;
use crate::ops::reduce::sum_prod::SUM_DIM;
use crate::ops::view::as_strided::AS_STRIDED;
use crate::ops::view::reshape::PERMUTE;
use crate::tensor::Tensor;

pub static OPS: &[&Op] = &[&EINSUM];

pub static EINSUM: Op = Op {
    sig: sig("einsum(str equation, Tensors operands) -> Tensor"),
    doc: "Multiplies operands and sums over index letters: letters that are not in the output after `->` are summed. Without `->` the output has the letters that occur once, in alphabetical order. `...` stands for dimensions that broadcast.",
    forms: F,
    body: decompose(|c| einsum(c.str("equation").unwrap_or(""), c.tensors("operands"))?.outputs()),
    vjp: Vjp::Composite,
    samples: &[
        "'ij,jk->ik', [f32[2,3], f32[3,4]]",
        "'ij->ji', [f32[2,3]]",
        "'ii->i', [f32[3,3]]",
        "'bij,bjk', [f32[2,3,4], f32[2,4,2]]",
        "'...ij,...jk->...ik', [f32[2,2,3], f32[3,2]]",
        "'i,j,k->ijk', [f32[2], f32[3], f32[2]]",
        "'ij,ij->', [f32[2,3], f32[2,3]]",
        "'ijk,ik->j', [i32[1,2,3], i32[1,3]]",
    ],
    errors: &[
        ("'ij,jk', [f32[2,3], f32[2,3]]", "RuntimeError", "does not broadcast"),
        ("'i$', [f32[2]]", "RuntimeError", "invalid subscript"),
        ("'ij->ik', [f32[2,3]]", "RuntimeError", "does not appear"),
    ],
    ..OP
};

/// The letters of an operand or of the output; `None` means an ellipsis.
type Labels = Vec<Option<u8>>;

fn parse(side: &str, start: usize) -> Result<Vec<Labels>> {
    let (bytes, mut out, mut i) = (side.as_bytes(), vec![Labels::new()], 0);
    while i < bytes.len() {
        let current = out.last_mut().expect("never empty");
        match bytes[i] {
            b' ' => {}
            b',' => out.push(Labels::new()),
            b'.' if bytes[i..].starts_with(b"...") => {
                if current.contains(&None) {
                    return Err(Error::runtime(
                        "einsum(): found '.' for operand for which an ellipsis was already found",
                    ));
                }
                current.push(None);
                i += 2;
            }
            b'.' => return Err(Error::runtime("einsum(): found '.' for operand that is not part of any ellipsis")),
            c if c.is_ascii_alphabetic() => current.push(Some(c)),
            _ => {
                return Err(Error::runtime(format!(
                    "einsum(): invalid subscript given at index {} in the equation string, subscripts must be in [a-zA-Z]",
                    start + i
                )));
            }
        }
        i += 1;
    }
    Ok(out)
}

struct Plan {
    inputs: Vec<Labels>,
    /// Letters of the output, then those that are summed; the ellipsis is given by `None`s, one per dimension.
    order: Labels,
    kept: usize,
}

fn plan(equation: &str, operands: &[Tensor]) -> Result<Plan> {
    let (left, right) = match equation.split_once("->") {
        Some((l, r)) => (l, Some(r)),
        None => (equation, None),
    };
    let inputs = parse(left, 0)?;
    if inputs.len() != operands.len() {
        let fewer = if operands.len() < inputs.len() { "fewer" } else { "more" };
        return Err(Error::runtime(format!("einsum(): {fewer} operands were provided than specified in the equation")));
    }
    let mut dots = 0;
    for (i, (labels, t)) in inputs.iter().zip(operands).enumerate() {
        let letters = labels.iter().flatten().count();
        let has_dots = labels.contains(&None);
        if letters > t.ndim() || (letters != t.ndim() && !has_dots) {
            let none = if has_dots { "" } else { " and no ellipsis was given" };
            let verb = if has_dots { "is more than" } else { "does not match" };
            return Err(Error::runtime(format!(
                "einsum(): the number of subscripts in the equation ({letters}) {verb} the number of dimensions ({}) for operand {i}{none}",
                t.ndim()
            )));
        }
        if has_dots {
            dots = dots.max(t.ndim() - letters);
        }
    }
    let mut output = match right {
        Some(r) => parse(r, left.len() + 2)?.swap_remove(0),
        None => implicit(&inputs),
    };
    check_output(&output, &inputs)?;
    if let Some(at) = output.iter().position(|l| l.is_none()) {
        output.splice(at..=at, std::iter::repeat_n(None, dots));
    }
    let kept = output.len();
    let mut order = output;
    if !order.contains(&None) {
        order.extend(std::iter::repeat_n(None, dots)); // an ellipsis missing in the output is summed
    }
    for label in inputs.iter().flatten().filter(|l| l.is_some()) {
        if !order.contains(label) {
            order.push(*label);
        }
    }
    Ok(Plan { inputs, order, kept })
}

/// The implicit output: the ellipsis, then the letters that occur once, in alphabetical order.
fn implicit(inputs: &[Labels]) -> Labels {
    let all: Vec<u8> = inputs.iter().flatten().flatten().copied().collect();
    let mut once: Vec<u8> = all.iter().copied().filter(|c| all.iter().filter(|d| *d == c).count() == 1).collect();
    once.sort_unstable();
    let dots = inputs.iter().flatten().any(|l| l.is_none());
    dots.then_some(None).into_iter().chain(once.into_iter().map(Some)).collect()
}

fn check_output(output: &Labels, inputs: &[Labels]) -> Result<()> {
    for (i, label) in output.iter().enumerate() {
        let Some(c) = label else { continue };
        if output[..i].contains(label) {
            return Err(Error::runtime(format!(
                "einsum(): output subscript {} appears more than once in the output",
                *c as char
            )));
        }
        if !inputs.iter().any(|l| l.contains(label)) {
            let c = *c as char;
            return Err(Error::runtime(format!(
                "einsum(): output subscript {c} does not appear in the equation for any input operand"
            )));
        }
    }
    Ok(())
}

/// A number for each dimension: its letter, or for the ellipsis its position, counted from `first`.
fn keys(labels: &Labels, first: usize) -> Vec<usize> {
    let mut dot = 256 + first;
    let key = |l: &Option<u8>| match l {
        Some(c) => usize::from(*c),
        None => {
            dot += 1;
            dot
        }
    };
    labels.iter().map(key).collect()
}

/// The operand with repeated letters reduced to their diagonal, its dimensions in the plan's order, size one for
/// missing letters.
fn aligned(t: &Tensor, labels: &Labels, plan: &Plan, number: usize) -> Result<Term> {
    let spread = t.ndim() - labels.iter().flatten().count();
    let full: Labels =
        labels.iter().flat_map(|l| std::iter::repeat_n(*l, if l.is_none() { spread } else { 1 })).collect();
    let dots = plan.order.iter().filter(|l| l.is_none()).count();
    let (mut shape, mut strides, mut seen) = (Dims::new(), Dims::new(), Vec::new());
    let names = keys(&full, if full.contains(&None) { dots - spread } else { 0 });
    for (d, (label, key)) in full.iter().zip(names).enumerate() {
        let (size, stride) = (t.size(d), t.strides()[d]);
        match seen.iter().position(|k| *k == key) {
            Some(at) if shape[at] != size => {
                return Err(Error::runtime(format!(
                    "einsum(): subscript {} is repeated for operand {number} but the sizes don't match, {size} != {}",
                    label.unwrap_or(b'.') as char,
                    shape[at]
                )));
            }
            Some(at) => strides[at] += stride,
            None => {
                seen.push(key);
                shape.push(size);
                strides.push(stride);
            }
        }
    }
    let diagonal = if shape.len() == t.ndim() { Term::from(t) } else { AS_STRIDED.call((t, &shape[..], &strides[..])) };
    let places: Vec<Option<usize>> =
        keys(&plan.order, 0).iter().map(|key| seen.iter().position(|k| k == key)).collect();
    let permuted = PERMUTE.call((diagonal, places.iter().flatten().map(|&p| p as i64).collect::<Ints>()));
    let missing = places.iter().enumerate().filter(|(_, p)| p.is_none());
    Ok(missing.fold(permuted, |t, (i, _)| t.unsqueeze(i as i64)))
}

fn einsum(equation: &str, operands: Vec<Tensor>) -> Result<Term> {
    if operands.is_empty() {
        return Err(Error::value("einsum(): must provide at least one operand"));
    }
    let plan = plan(equation, &operands)?;
    let aligned = operands
        .iter()
        .zip(&plan.inputs)
        .enumerate()
        .map(|(i, (t, labels))| aligned(t, labels, &plan, i)?.ok())
        .collect::<Result<Vec<Tensor>>>()?;
    check_sizes(&aligned, &plan)?;
    let ends = |dim: usize| aligned.iter().rposition(|t| t.size(dim) != 1).unwrap_or(0);
    let summed = |i: usize| -> Vec<usize> { (plan.kept..plan.order.len()).filter(|&d| ends(d) == i).collect() };
    let mut result = Term::from(&aligned[0]);
    if aligned.len() > 1 {
        result = sum_kept(result, &summed(0));
    }
    for (i, t) in aligned.iter().enumerate().skip(1) {
        result = contract(result.ok()?, t, &summed(i));
    }
    if plan.order.len() == plan.kept {
        return Ok(result);
    }
    if aligned.len() == 1 {
        return Ok(SUM_DIM.call((result, (plan.kept as i64..plan.order.len() as i64).collect::<Ints>())));
    }
    let result = result.ok()?;
    let sizes: Ints = result.shape()[..plan.kept].iter().map(|&d| d as i64).collect();
    Ok(Term::from(&result).reshape(&sizes))
}

fn check_sizes(aligned: &[Tensor], plan: &Plan) -> Result<()> {
    for (dim, label) in plan.order.iter().enumerate() {
        let mut known = 1;
        for (i, t) in aligned.iter().enumerate() {
            let size = t.size(dim);
            if size != 1 && known != 1 && size != known {
                return Err(Error::runtime(format!(
                    "einsum(): subscript {} has size {size} for operand {i} which does not broadcast with previously seen size {known}",
                    label.map_or_else(|| "...".to_string(), |c| (c as char).to_string())
                )));
            }
            known = if size != 1 { size } else { known };
        }
    }
    Ok(())
}

/// The sum over dimensions, which are kept with size one; if all are of size one already, a small integer dtype is
/// kept.
fn sum_kept(t: Term, dims: &[usize]) -> Term {
    let wide = |d: &&usize| t.get().is_none_or(|t| t.size(**d) != 1);
    let wide: Ints = dims.iter().filter(wide).map(|&d| d as i64).collect();
    if wide.is_empty() { t } else { t.sum(&wide, true) }
}

/// The product of two aligned operands, summed over `dims`, which are kept with size one.
fn contract(a: Tensor, b: &Tensor, dims: &[usize]) -> Term {
    let wide = |t: &Tensor, d: usize| t.size(d) != 1;
    let only = |t: &Tensor, o: &Tensor| -> Vec<usize> {
        dims.iter().copied().filter(|&d| wide(t, d) && !wide(o, d)).collect()
    };
    let (left, right) = (sum_kept((&a).into(), &only(&a, b)), sum_kept(b.into(), &only(b, &a)));
    let shared: Vec<usize> = dims.iter().copied().filter(|&d| wide(&a, d) && wide(b, d)).collect();
    if shared.is_empty() {
        return left * right;
    }
    let rest: Vec<usize> = (0..a.ndim()).filter(|d| !dims.contains(d)).collect();
    let pick = |f: &dyn Fn(usize) -> bool| -> Vec<usize> { rest.iter().copied().filter(|&d| f(d)).collect() };
    let rows = pick(&|d| wide(&a, d) && !wide(b, d));
    let before = pick(&|d| wide(b, d) && !wide(&a, d));
    if before.last().zip(rows.first()).is_some_and(|(last, first)| last < first) {
        // As in PyTorch: the operand whose dimensions come first in the result is the left one, and nothing is permuted.
        return contract(b.clone(), &a, dims);
    }
    let batch = pick(&|d| wide(&a, d) && wide(b, d));
    let columns = pick(&|d| !wide(&a, d));
    let ones: Vec<usize> = dims.iter().copied().filter(|d| !shared.contains(d)).collect();
    let order = |parts: [&[usize]; 5]| -> Ints { parts.concat().iter().map(|&d| d as i64).collect() };
    let count = |t: &Tensor, dims: &[usize]| dims.iter().map(|&d| t.size(d) as i64).product::<i64>();
    let (nb, nr, nc, k) = (count(&a, &batch), count(&a, &rows), count(b, &columns), count(&a, &shared));
    let left = PERMUTE.call((left, order([&batch, &rows, &shared, &columns, &ones]))).reshape(&[nb, nr, k]);
    let right = PERMUTE.call((right, order([&batch, &shared, &columns, &rows, &ones]))).reshape(&[nb, k, nc]);
    let sizes: Ints = [&batch, &rows]
        .into_iter()
        .flatten()
        .map(|&d| a.size(d) as i64)
        .chain(columns.iter().map(|&d| b.size(d) as i64))
        .chain(std::iter::repeat_n(1, dims.len()))
        .collect();
    let back = order([&batch, &rows, &columns, &shared, &ones]);
    let mut inverse: Ints = smallvec::smallvec![0; back.len()];
    back.iter().enumerate().for_each(|(i, &d)| inverse[d as usize] = i as i64);
    PERMUTE.call((BMM.call((left, right)).reshape(&sizes), inverse))
}
