//! Sums, means and maxima of rows of an embedding: embedding_bag.
//!
//! A bag is a range of indices; rows are looked up and added to the row of their bag, so gradients are those of both steps.

use crate::autograd::diagnostics;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result, Show};
use crate::op::*;
use crate::ops::create::full::ZEROS;
use crate::ops::create::range::ARANGE_STEP;
use crate::ops::indexing::embedding::{EMBEDDING, by_rows, rescale};
use crate::ops::indexing::gather_scatter::SCATTER_ADD;
use crate::ops::indexing::index_select::{INDEX_ADD, INDEX_SELECT};
use crate::ops::support::host_read;
use crate::ops::support::host_read::Dense;
use crate::rt::reserve::filled;
use crate::tensor::Tensor;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&F_EMBEDDING_BAG, &EMBEDDING_BAG, &BAGS];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Sum,
    Mean,
    Max,
}
impl Enumerated for Mode {
    const VALUES: &'static [(&'static str, Mode)] = &[("sum", Mode::Sum), ("mean", Mode::Mean), ("max", Mode::Max)];
}

impl Mode {
    fn numbered(n: i64) -> Result<Mode> {
        match n {
            0 => Ok(Mode::Sum),
            1 => Ok(Mode::Mean),
            2 => Ok(Mode::Max),
            _ => Err(Error::runtime(format!("mode must be 0 (sum), 1 (mean) or 2 (max), got {n}"))),
        }
    }
}

/// The weights of samples among the arguments of `_embedding_bag`.
const PER_SAMPLE: usize = 6;
const WEIGHTS: crate::op::gradient::Saves = 1 << PER_SAMPLE;
/// The result that says how much of each row its bag takes.
const SHARES: usize = 4;
const SAVED_SHARES: crate::op::gradient::Saves = OUT0 << SHARES;

fn is_index(t: &Tensor) -> bool {
    matches!(t.dtype(), DType::I64 | DType::I32)
}

fn infer(c: &Call) -> Result<Specs> {
    let [weight, indices, offsets] = [c.tensor("weight")?, c.tensor("indices")?, c.tensor("offsets")?];
    let mode = Mode::numbered(c.int("mode")?)?;
    if weight.ndim() != 2 || indices.ndim() != 1 || offsets.ndim() != 1 {
        return Err(Error::runtime(format!(
            "expected a weight of 2 dimensions, indices and offsets of 1; got shapes {}, {} and {}",
            Show(weight.shape()),
            Show(indices.shape()),
            Show(offsets.shape())
        )));
    }
    for (name, t) in [("indices", indices), ("offsets", offsets)] {
        if !is_index(t) {
            let own = t.dtype().scalar_type_name();
            return Err(Error::runtime(format!(
                "Expected tensor for argument '{name}' to have one of the following scalar types: Long, Int; but got torch.{own}Tensor instead"
            )));
        }
    }
    if !weight.dtype().is_float() {
        let own = weight.dtype().scalar_type_name();
        return Err(Error::not_implemented(format!("\"embedding_bag\" not implemented for '{own}'")));
    }
    if let Some(t) = c.opt_tensor("per_sample_weights") {
        check_sample_weights(t, weight, indices, mode)?;
    }
    let last = usize::from(c.flag("include_last_offset"));
    let Some(bags) = offsets.numel().checked_sub(last) else {
        return Err(Error::runtime("include_last_offset: number of offsets should be at least 1"));
    };
    let device = weight.device();
    let width = weight.size(1);
    let of_bags = |shape: &[usize]| Spec::new(shape, DType::I64, device);
    let greatest = if mode == Mode::Max { of_bags(&[bags, width]) } else { of_bags(&[bags]) };
    Ok(smallvec![
        Spec::new(&[bags, width], weight.dtype(), device),
        of_bags(indices.shape()),
        of_bags(&[bags]),
        greatest,
        Spec::new(indices.shape(), weight.dtype(), device),
    ])
}

fn check_sample_weights(t: &Tensor, weight: &Tensor, indices: &Tensor, mode: Mode) -> Result<()> {
    if mode != Mode::Sum {
        return Err(Error::runtime("embedding_bag: per_sample_weights only supported with mode='sum'"));
    }
    if t.dtype() != weight.dtype() {
        let (wanted, own) = (weight.dtype().scalar_type_name(), t.dtype().scalar_type_name());
        return Err(Error::runtime(format!("expected scalar type {wanted} but found {own}")));
    }
    if t.shape() != indices.shape() {
        return Err(Error::runtime(format!(
            "embedding_bag: expected per_sample_weights of shape {}, got {}",
            Show(indices.shape()),
            Show(t.shape())
        )));
    }
    Ok(())
}

/// Which indices a bag takes, on the host.
struct Layout {
    /// The bag of each index, 0 for those that no bag takes.
    bag: Vec<i64>,
    /// How many rows each bag has.
    sizes: Vec<i64>,
    /// Whether a bag takes the row of an index.
    takes: Vec<bool>,
    indices: Vec<i64>,
}

impl Layout {
    fn new(c: &Call) -> Result<Layout> {
        let (indices, offsets) =
            (host_read::int_list(c.tensor("indices")?)?, host_read::int_list(c.tensor("offsets")?)?);
        let (n, rows) = (indices.len(), c.tensor("weight")?.size(0) as i64);
        if let Some(i) = indices.iter().find(|&&i| i < 0 || i >= rows) {
            return Err(Error::runtime(format!(
                "Expected idx >= 0 && idx < num_embeddings ({rows}) but found idx to be {i}"
            )));
        }
        if offsets.first().is_some_and(|&first| first != 0) {
            let first = offsets[0];
            return Err(Error::runtime(format!(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {first}"
            )));
        }
        if let Some(&last) = offsets.last().filter(|&&last| last > n as i64) {
            return Err(Error::runtime(format!(
                "offsets[-1] can not be greater than input's length {n} but got offsets[-1] of {last}"
            )));
        }
        if offsets.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(Error::runtime("offsets must not decrease"));
        }
        let bags = offsets.len() - usize::from(c.flag("include_last_offset"));
        let (mut bag, mut sizes, mut takes) = (filled(0, n)?, filled(0, bags)?, filled(false, n)?);
        for (b, size) in sizes.iter_mut().enumerate() {
            let end = offsets.get(b + 1).map_or(n, |&end| end as usize);
            for i in offsets[b] as usize..end {
                bag[i] = b as i64;
                takes[i] = indices[i] != c.int("padding_idx")?;
                *size += i64::from(takes[i]);
            }
        }
        Ok(Layout { bag, sizes, takes, indices })
    }
}

fn device_list(values: &[i64], device: Device) -> Result<Tensor> {
    Term::from(Tensor::from_slice(values, &[values.len()])?).to_device(device).ok()
}

fn run(c: &Call, out: &[Tensor]) -> Result<()> {
    let (weight, mode) = (c.tensor("weight")?, Mode::numbered(c.int("mode")?)?);
    let l = Layout::new(c)?;
    let device = weight.device();
    let share = |(i, &takes): (usize, &bool)| match mode {
        _ if !takes => 0.0,
        Mode::Mean => 1.0 / l.sizes[l.bag[i] as usize] as f64,
        _ => 1.0,
    };
    let shares = crate::rt::reserve::list(l.takes.iter().enumerate().map(share))?;
    out[1].copy_raw(&device_list(&l.bag, device)?)?;
    out[2].copy_raw(&device_list(&l.sizes, device)?)?;
    out[4].copy_raw(&Term::from(Tensor::from_slice(&shares, &[shares.len()])?).to_device(device).ok()?)?;
    let rows = EMBEDDING.call((weight, c.tensor("indices")?));
    if mode == Mode::Max {
        return greatest(&l, &rows.ok()?, out);
    }
    // Half precision adds in single precision.
    let wide = if weight.dtype().size() < 4 { DType::F32 } else { weight.dtype() };
    let mut rows = rows.to_dtype(wide);
    if mode == Mode::Mean || c.opt_tensor("per_sample_weights").is_some() {
        let factor = match c.opt_tensor("per_sample_weights") {
            Some(t) => Term::from(t).to_dtype(wide),
            None => Term::from(&out[4]).to_dtype(wide),
        };
        rows = rows * factor.unsqueeze(1);
    }
    if l.takes.contains(&false) {
        rows = rows.zero_where(Term::from(&out[4]).equals(0).unsqueeze(1));
    }
    let zeros = Tensor::zeros(out[0].shape(), wide, device)?;
    let sums = INDEX_ADD.call((&zeros, 0, &out[1], rows));
    out[3].copy_raw(&out[2])?;
    out[0].copy_raw(&sums.to_dtype(weight.dtype()).ok()?)
}

/// The greatest element of each column of each bag, and the index whose row has it; a loop on the host.
fn greatest(l: &Layout, rows: &Tensor, out: &[Tensor]) -> Result<()> {
    let (rows, width) = (Dense::<f64>::of(rows)?, rows.size(1));
    let (rows, n) = (rows.elements()?, l.sizes.len() * width);
    let (mut best, mut which, mut found) = (filled(0.0, n)?, filled(0, n)?, filled(false, l.sizes.len())?);
    for i in (0..l.bag.len()).filter(|&i| l.takes[i]) {
        let bag = l.bag[i] as usize;
        let first = !std::mem::replace(&mut found[bag], true);
        for d in 0..width {
            let (value, at) = (rows[i * width + d], bag * width + d);
            if first || value > best[at] {
                (best[at], which[at]) = (value, l.indices[i]);
            }
        }
    }
    let device = out[0].device();
    let to = |t: Result<Tensor>| Term(t).to_device(device).ok();
    out[0].copy_raw(&to(Tensor::from_slice(&best, out[0].shape()))?)?;
    out[3].copy_raw(&to(Tensor::from_slice(&which, out[3].shape()))?)
}

/// The gradient of each looked-up row.
fn row_gradients(c: &VjpCtx) -> Term {
    INDEX_SELECT.call((c.g(), 0, c.out(1)))
}

fn weight_gradient(c: &VjpCtx) -> Term {
    if c.int("mode") == 2 {
        let used = c.g().zero_where(c.out(2).equals(0).unsqueeze(1));
        let zeros = Term(Tensor::zeros(&c.shape(0), c.meta_of(0).dtype, c.meta_of(0).device));
        return SCATTER_ADD.call((zeros, 0, c.out(3), used));
    }
    let mut factor = c.out(SHARES);
    if c.opt_tensor("per_sample_weights").is_some() {
        factor = factor * c.arg(PER_SAMPLE);
    }
    let slopes = row_gradients(c) * factor.unsqueeze(1);
    by_rows(c, slopes)
}

/// The forward of all modes: also the bag of each index, the size of each bag, the rows of maxima, and shares of rows.
pub static BAGS: Op = Op {
    sig: sig(
        "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int padding_idx) -> Tensor[]",
    ),
    doc: "`embedding_bag`, and the factor of each row without those of the samples.",
    forms: HIDDEN,
    body: kernel(infer, run, Some(run)),
    vjp: Vjp::Each(&[
        d(0, A1 | A2 | WEIGHTS | OUT1 | OUT2 | (OUT0 << 3) | SAVED_SHARES, weight_gradient),
        d(PER_SAMPLE, A0 | A1 | OUT1 | SAVED_SHARES, |c| {
            (row_gradients(c) * EMBEDDING.call((c.arg(0), c.arg(1)))).sum(&[1], false) * c.out(SHARES)
        }),
    ]),
    node: "EmbeddingBagBackward0",
    constant: &[SHARES],
    keeps: Some(
        "indices mode offsets padding_idx per_sample_weights result1 result2 result3 scale_grad_by_freq sparse weight weight_sym_argsize_0",
    ),
    samples: &[
        "f32[4,3], i64[5](0..4), i64[2](= 0, 2), False, 1, False, None, False, -1",
        "f32[4,3], i64[5](0..4), i64[3](= 0, 2, 5), False, 0, False, f32[5], True, 1",
        "f32[4,3], i64[5](0..4), i64[3](= 0, 2, 2), False, 2, False, None, False, 1",
    ],
    errors: &[(
        "f32[4,3], i64[1](= 7), i64[1](= 0), False, 0, False, None, False, -1",
        "RuntimeError",
        "found idx to be 7",
    )],
    ..OP
};

/// `padding_idx` counted from the front; -1 for none.
fn padding(given: Option<i64>, weight: &Tensor) -> Result<i64> {
    let rows = weight.shape().first().map_or(0, |&n| n as i64);
    match given {
        None => Ok(-1),
        Some(i) if i >= -rows && i < rows => Ok(if i < 0 { i + rows } else { i }),
        Some(i) => Err(Error::runtime(format!(
            "padding_idx must be within the number of embeddings, -{rows} through {}, but got {i}",
            rows - 1
        ))),
    }
}

pub static EMBEDDING_BAG: Op = Op {
    sig: sig(
        "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor[]",
    ),
    doc: "`nn.functional.embedding_bag` with `mode` 0 (sum), 1 (mean) or 2 (max); also the bag of each index, the size of each bag, and the indices of the greatest elements.",
    forms: F,
    body: decompose(|c| {
        let mut args: Args = c.args[..8].iter().map(|v| v.reborrow()).collect();
        args.push(padding(c.opt_int("padding_idx"), c.tensor("weight")?)?.into());
        let mut out = BAGS.calls(args)?;
        out.truncate(SHARES);
        Ok(out)
    }),
    vjp: Vjp::Composite,
    samples: &["f32[4,3], i64[5](0..4), i64[2](= 0, 2), False, 1", "f32[4,3], i64[5](0..4), i64[2](= 0, 2), False, 2"],
    errors: &[
        ("f32[4,3], i64[2](0..4), i64[1](= 1)", "RuntimeError", "offsets[0] has to be 0"),
        ("f32[4,3], i64[2](0..4), i64[2](= 0, 3)", "RuntimeError", "can not be greater than input's length 2"),
        ("f32[4,3], i64[2](0..4), i64[1](= 0), padding_idx=4", "RuntimeError", "padding_idx must be within"),
    ],
    ..OP
};

pub static F_EMBEDDING_BAG: Op = Op {
    sig: sig(
        "nn.functional.embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, str{sum|mean|max} mode='mean', bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None) -> Tensor",
    ),
    unknown_choice: |_, _| Error::value("mode has to be one of sum, mean or max"),
    doc: "The sum, mean or greatest elements of the rows of `weight` in each bag of indices, without making the rows an input of the graph.\n\n`input`: [bags, indices of a bag], or one dimension with `offsets` where each bag begins. The row `padding_idx` counts for nothing; `per_sample_weights` multiply the rows (sum only); with `max_norm`, rows that are looked up are first rescaled in place. With `sparse` the gradient of the sum and mean is a sparse tensor of these rows.",
    forms: F,
    body: decompose(embedding_bag),
    vjp: Vjp::Composite,
    samples: &[
        "i64[2,3](0..4), f32[4,3]",
        "i64[5](0..4), f32[4,3], i64[3](= 0, 2, 2), mode='sum'",
        "i64[2,3](0..4), f32[4,3], mode='max', padding_idx=1",
        "i64[5](0..4), f32[4,3], i64[2](= 0, 2), mode='sum', per_sample_weights=f32[5]",
        "i64[5](0..4), f32[4,3], i64[3](= 0, 2, 5), include_last_offset=True, padding_idx=-1",
        "i64[2,3](0..4), f32[4,3], scale_grad_by_freq=True",
    ],
    errors: &[
        ("i64[2,3](0..4), f32[4,3], mode='min'", "ValueError", "mode has to be one of sum, mean or max"),
        ("i64[3](0..4), f32[4,3]", "ValueError", "offsets has to be a 1D Tensor but got None"),
        ("i64[2,3](0..4), f32[4,3], i64[2]", "ValueError", "if input is 2D, then offsets has to be None"),
        ("i64[](0..4), f32[4,3]", "ValueError", "input has to be 1D or 2D Tensor, but got Tensor of dimension 0"),
        ("i64[2,3](0..4), f32[4]", "ValueError", "weight has to be a 2D Tensor, but got Tensor of dimension 1"),
        ("i64[1,3](= 0, 4, 1), f32[4,3]", "RuntimeError", "found idx to be 4"),
        (
            "i64[2,3](0..4), f32[4,3], per_sample_weights=f32[2,3]",
            "NotImplementedError",
            "per_sample_weights is only supported for mode='sum'",
        ),
        (
            "i64[2,3](0..4), f32[4,3], mode='max', scale_grad_by_freq=True",
            "ValueError",
            "max mode does not support scaling the gradient by the frequency",
        ),
    ],
    ..OP
};

/// Offsets of the rows of a matrix of indices, or those of the call.
fn offsets(c: &Call, input: &Tensor) -> Result<Tensor> {
    match (input.ndim(), c.opt_tensor("offsets")) {
        (2, None) => {
            let (bags, n) = (input.size(0), input.size(1));
            let starts = match n {
                0 => ZEROS.call(([bags as i64], DType::I64, input.device())),
                n => ARANGE_STEP.call((0, bags * n, n, DType::I64, input.device())),
            };
            starts.ok()
        }
        (2, Some(_)) => Err(Error::value(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, found offsets of type <class 'Tensor'>",
        )),
        (1, None) => Err(Error::value("offsets has to be a 1D Tensor but got None")),
        (1, Some(t)) if t.ndim() == 1 => Ok(t.clone()),
        (1, Some(_)) => Err(Error::value("offsets has to be a 1D Tensor")),
        (n, _) => Err(Error::value(format!("input has to be 1D or 2D Tensor, but got Tensor of dimension {n}"))),
    }
}

fn embedding_bag(c: &Call) -> Result<Outputs> {
    let (mut input, mut weight, mode) = (c.tensor(0)?, c.tensor("weight")?, c.choice::<Mode>("mode"));
    if weight.dtype() == DType::I64 && input.dtype().is_float() {
        diagnostics::warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and \
             should now be `embedding_bag(input, weight, ...)`.",
        )?;
        (input, weight) = (weight, input);
    }
    let samples = c.opt_tensor("per_sample_weights");
    if let Some(t) = samples.filter(|t| t.shape() != input.shape()) {
        return Err(Error::value(format!(
            "embedding_bag: If per_sample_weights (torch.Size({})) is not None, then it must have the same shape as the input (torch.Size({}))",
            Show(t.shape()),
            Show(input.shape())
        )));
    }
    if weight.ndim() != 2 {
        let n = weight.ndim();
        return Err(Error::value(format!("weight has to be a 2D Tensor, but got Tensor of dimension {n}")));
    }
    let offsets = offsets(c, input)?;
    if mode == Mode::Max && c.flag("scale_grad_by_freq") {
        return Err(Error::value("max mode does not support scaling the gradient by the frequency"));
    }
    if mode == Mode::Max && c.flag("sparse") {
        return Err(Error::value("max mode does not support sparse weights"));
    }
    if let Some(limit) = c.opt_float("max_norm") {
        rescale(weight, input, limit, c.float("norm_type")?)?;
    }
    if samples.is_some() && mode != Mode::Sum {
        let name = Mode::VALUES[mode as usize].0;
        return Err(Error::not_implemented(format!(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{name}')."
        )));
    }
    let flat = |t: &Tensor| Term::from(t).reshape(&[-1]).ok();
    let args: Args = smallvec![
        weight.into(),
        flat(input)?.into(),
        (&offsets).into(),
        c.flag("scale_grad_by_freq").into(),
        (mode as i64).into(),
        c.flag("sparse").into(),
        samples.map(flat).transpose()?.into(),
        (c.flag("include_last_offset") && input.ndim() == 1).into(),
        padding(c.opt_int("padding_idx"), weight)?.into()
    ];
    Ok(smallvec![BAGS.calls(args)?.swap_remove(0)])
}
