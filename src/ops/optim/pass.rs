//! One pass over the parameters of an optimizer step: one parallel loop on the CPU, one shader per parameter on the GPU.
//!
//! A step is elementwise, so its result does not depend on how the elements of all parameters are split over threads. Only
//! the loop over elements is compiled for each rule; what surrounds it, once for each number of tensors.

use crate::cpu::arith::Float;
use crate::cpu::number_class::Fuse;
use crate::cpu::parallel::par_for;
use crate::cpu::simd;
use crate::cpu::view::{SendPtr, load, store};
use crate::device::Device;
use crate::dispatch::mixed_devices;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::Layout;
use crate::op::body::Run;
use crate::op::{Body, Call, Kernel, Specs};
use crate::ops::indexing::gather_scatter::cast_raw;
use crate::rt::reserve;
use crate::storage::Buffer;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Elements of a parameter that make a task, and that pass through conversion buffers at once.
const CHUNK: usize = 2048;
/// Tasks below which another thread costs more than it gains.
const GRAIN: usize = 8;
/// Elements that go through local arrays at once: the compiler vectorizes these without asking whether tensors overlap.
const BLOCK: usize = 16;

/// The numbers that a shader takes, by their names in its formula.
pub(super) type Numbers = SmallVec<[(&'static str, f64); 12]>;

/// The update of one parameter; the fields of the implementing type are the numbers of the step.
///
/// The tensors are the parameter, its gradient and its state; all but the gradient are written.
pub(super) trait Update<const N: usize>: Copy + Send + Sync {
    /// The names of the rule and, in its shader, of the tensors.
    const NAME: &'static str;
    const TENSORS: [&'static str; N];
    /// The rule in WGSL, over these names and, in double braces, those of the numbers.
    const WGSL: &'static str;
    /// The new values of an element of each tensor from the old ones; that of the gradient is not used.
    fn rule<T: Float>(self) -> impl Fn([T; N]) -> [T; N];
    fn numbers(self) -> Numbers;
}

/// The position of the gradient among the tensors of an update.
const GRAD: usize = 1;

/// An update whose rule is not known.
trait AnyUpdate<const N: usize>: Send + Sync {
    /// Updates `len` elements.
    ///
    /// # Safety
    /// The runs hold so many, nobody else uses them, and they share no memory but where two are only read.
    unsafe fn narrow(&self, runs: [*mut f32; N], len: usize);
    /// As `narrow`.
    ///
    /// # Safety
    /// As `narrow`.
    unsafe fn wide(&self, runs: [*mut f64; N], len: usize);
    /// The name, the names of the tensors, the rule in WGSL and its numbers.
    fn shader(&self) -> (&'static str, [&'static str; N], &'static str, Numbers);
}

impl<U: Update<N>, const N: usize> AnyUpdate<N> for U {
    unsafe fn narrow(&self, runs: [*mut f32; N], len: usize) {
        simd::run(Elements { update: *self, runs, len });
    }
    unsafe fn wide(&self, runs: [*mut f64; N], len: usize) {
        simd::run(Elements { update: *self, runs, len });
    }
    fn shader(&self) -> (&'static str, [&'static str; N], &'static str, Numbers) {
        (U::NAME, U::TENSORS, U::WGSL, self.numbers())
    }
}

/// A dtype that updates are computed in.
trait Computed: Float {
    /// # Safety
    /// As `AnyUpdate::narrow`.
    unsafe fn update<const N: usize>(update: &dyn AnyUpdate<N>, runs: [*mut Self; N], len: usize);
}
impl Computed for f32 {
    unsafe fn update<const N: usize>(update: &dyn AnyUpdate<N>, runs: [*mut f32; N], len: usize) {
        // SAFETY: the caller's promise.
        unsafe { update.narrow(runs, len) }
    }
}
impl Computed for f64 {
    unsafe fn update<const N: usize>(update: &dyn AnyUpdate<N>, runs: [*mut f64; N], len: usize) {
        // SAFETY: the caller's promise.
        unsafe { update.wide(runs, len) }
    }
}

/// The update of one parameter with its tensors.
struct Item<'a, const N: usize> {
    update: &'a dyn AnyUpdate<N>,
    tensors: [&'a Tensor; N],
    /// Whether the tensors can be walked as one run of memory each.
    alike: bool,
}

/// The body of an op that writes to lists of tensors and returns nothing. The tensors of one parameter are on one device.
pub(super) const fn writes_lists(run: Run) -> Body {
    let infer = |_: &Call| Ok(Specs::new());
    Body::Kernel(Kernel { any_device: true, ..Kernel::of(infer, run, Some(run)) })
}

/// Updates all parameters, of which the arguments `lists` of the call hold the tensors; `update` gets the parameter's number.
pub(super) fn run<U: Update<N>, const N: usize>(
    c: &Call,
    lists: [usize; N],
    update: impl FnMut(usize) -> Result<U>,
) -> Result<()> {
    let rows = rows(c, lists)?;
    let updates = reserve::try_list((0..rows.len()).map(update))?;
    let mut items = reserve::room(rows.len())?;
    for (row, update) in rows.iter().zip(&updates) {
        items.push(Item::new(update, *row)?);
    }
    run_items(&items)
}

/// The tensors of each parameter.
fn rows<'a, const N: usize>(c: &'a Call, lists: [usize; N]) -> Result<Vec<[&'a Tensor; N]>> {
    let columns = lists.map(|i| c.args[i].list());
    let n = columns[0].len();
    if let Some(k) = (0..N).find(|&k| columns[k].len() != n) {
        let (name, got) = (c.op.sig.params()[lists[k]].name(&c.op.sig), columns[k].len());
        return Err(Error::runtime(format!("expected one tensor per parameter in '{name}'; expected {n}, got {got}")));
    }
    let missing = || Error::internal("a list of tensors has an empty place");
    let mut rows = reserve::room(n)?;
    for (i, first) in columns[0].iter().enumerate() {
        let mut row = [first.as_ref().ok_or_else(missing)?; N];
        for (tensor, column) in row.iter_mut().zip(columns) {
            *tensor = column[i].as_ref().ok_or_else(missing)?;
        }
        rows.push(row);
    }
    Ok(rows)
}

fn run_items<const N: usize>(items: &[Item<N>]) -> Result<()> {
    if shares_memory(items)? {
        // Parameters that share memory are updated one after another.
        for item in items {
            let one = std::slice::from_ref(item);
            if shares_memory(one)? {
                return Err(Error::runtime("the parameter, its gradient and its state must not share memory"));
            }
            update_all(one)?;
        }
    } else {
        update_all(items)?;
    }
    Ok(())
}

fn update_all<const N: usize>(items: &[Item<N>]) -> Result<()> {
    items.iter().filter(|i| i.tensors[0].device().is_gpu()).try_for_each(Item::launch)?;
    update_on_cpu(items)
}

fn update_on_cpu<const N: usize>(items: &[Item<N>]) -> Result<()> {
    let on_cpu = items.iter().filter(|i| i.tensors[0].device() == Device::Cpu);
    let lanes = reserve::try_list(on_cpu.map(Lane::new))?;
    // The number of the first task after each lane.
    let ends = reserve::list(lanes.iter().scan(0, |end, lane| {
        *end += lane.n.div_ceil(CHUNK);
        Some(*end)
    }))?;
    let (tasks, elements) = (ends.last().copied().unwrap_or(0), lanes.iter().map(|lane| lane.n).sum::<usize>());
    // A small parameter makes a short task: threads pay off by the number of elements.
    let grain = tasks.saturating_mul(GRAIN * CHUNK) / elements.max(1);
    par_for(tasks, grain.max(GRAIN), |tasks| {
        let mut i = ends.partition_point(|&end| end <= tasks.start);
        let (mut narrow, mut wide) = (Buffers::<f32, N>::default(), Buffers::<f64, N>::default());
        let mut task = tasks.start;
        while task < tasks.end {
            let (lane, end) = (&lanes[i], ends[i].min(tasks.end));
            let first = ends[i] - lane.n.div_ceil(CHUNK);
            let elements = (task - first) * CHUNK..((end - first) * CHUNK).min(lane.n);
            match lane.starts[0].1 {
                DType::F64 => lane.update(elements, &mut wide),
                _ => lane.update(elements, &mut narrow),
            }
            (task, i) = (end, i + 1);
        }
    });
    lanes.iter().try_for_each(Lane::write_back)
}

impl<'a, const N: usize> Item<'a, N> {
    /// Errors: where the tensors do not belong together.
    fn new(update: &'a dyn AnyUpdate<N>, tensors: [&'a Tensor; N]) -> Result<Item<'a, N>> {
        let param = tensors[0].meta();
        let complex = param.dtype.is_complex();
        let mut alike = param.layout.is_contiguous() || param.layout.is_dense();
        for m in tensors.map(Tensor::meta) {
            if m.storage.device() != param.storage.device() {
                return Err(mixed_devices(param.storage.device(), m.storage.device()));
            }
            if m.dtype.is_complex() != complex || !m.dtype.is_differentiable() {
                return Err(Error::not_implemented(
                    "optimizer steps are defined for floating point tensors, or complex ones with complex gradients and state",
                ));
            }
            if m.layout.shape != param.layout.shape {
                return Err(Error::runtime("the gradient and the state must have the shape of the parameter"));
            }
            alike &= m.layout.lies_as(&param.layout.strides);
        }
        Ok(Item { update, tensors, alike })
    }
    /// The update as one shader.
    fn launch(&self) -> Result<()> {
        let flat = |t: &Tensor| Layout { offset: t.layout().offset, ..Layout::contiguous(&[t.numel()]) };
        let whole = |t: &&Tensor| if self.alike { t.with_layout(flat(t)) } else { (*t).clone() };
        let tensors: SmallVec<[Tensor; 5]> = self.tensors.iter().map(whole).collect();
        let mut own = SmallVec::<[Tensor; 5]>::new();
        for (i, t) in tensors.iter().enumerate() {
            // A buffer is bound once, and elements on top of each other (expanded) are not written in place.
            let bound = t.layout().is_dense() && !tensors[..i].iter().any(|o| o.storage().same(t.storage()));
            own.push(if bound { t.clone() } else { cast_raw(t, t.dtype())? });
        }
        let mut written = SmallVec::<[_; 5]>::new();
        let (name, names, wgsl, numbers) = self.update.shader();
        for i in (0..N).filter(|&i| i != GRAD) {
            written.push((names[i], own[i].gpu_view()?));
        }
        gpu::update((name, wgsl), &written, (names[GRAD], own[GRAD].gpu_view()?), &numbers)?;
        let copied = |&i: &usize| i != GRAD && !own[i].storage().same(tensors[i].storage());
        (0..N).filter(copied).try_for_each(|i| tensors[i].copy_raw(&own[i]))
    }
}

/// One parameter on the CPU: each tensor as a run of real numbers in memory; a complex number is two of them.
struct Lane<'a, const N: usize> {
    update: &'a dyn AnyUpdate<N>,
    n: usize,
    starts: [(SendPtr<u8>, DType); N],
    tensors: [&'a Tensor; N],
    /// Where they do not lie alike: row-major copies of those that are not row-major.
    copies: Option<SmallVec<[Tensor; 5]>>,
}

/// A chunk of each tensor whose dtype is not the one that is computed in.
struct Buffers<T, const N: usize>([Vec<T>; N]);

impl<T, const N: usize> Default for Buffers<T, N> {
    fn default() -> Self {
        Buffers([(); N].map(|()| Vec::new()))
    }
}

impl<'a, const N: usize> Lane<'a, N> {
    fn new(item: &Item<'a, N>) -> Result<Lane<'a, N>> {
        let mut copies = None;
        if !item.alike {
            let dense = item.tensors.iter().map(|t| t.dense_copy(t.dtype()));
            copies = Some(dense.collect::<Result<SmallVec<[Tensor; 5]>>>()?);
        }
        let mut starts = [(SendPtr(std::ptr::null_mut::<u8>()), DType::F32); N];
        for (i, start) in starts.iter_mut().enumerate() {
            let t = copies.as_ref().map_or(item.tensors[i], |own| &own[i]);
            *start = (SendPtr(t.ptr()?), t.dtype().to_real());
        }
        let param = item.tensors[0];
        let n = param.numel() * if param.dtype().is_complex() { 2 } else { 1 };
        Ok(Lane { update: item.update, n, starts, tensors: item.tensors, copies })
    }
    /// Updates some elements, in `T`.
    fn update<T: Computed>(&self, elements: std::ops::Range<usize>, buffers: &mut Buffers<T, N>) {
        let direct = self.starts.iter().all(|&(_, dtype)| dtype == T::DTYPE);
        let step = if direct { elements.len().max(1) } else { CHUNK };
        for from in elements.clone().step_by(step) {
            let len = step.min(elements.end - from);
            let mut runs = [std::ptr::null_mut::<T>(); N];
            for (i, run) in runs.iter_mut().enumerate() {
                let (start, dtype) = self.starts[i];
                let at = start.at(from * dtype.size());
                *run = if dtype == T::DTYPE {
                    at.cast::<T>()
                } else {
                    buffers.0[i].resize(CHUNK, T::ZERO);
                    // SAFETY: the run lies inside the tensor, and the buffer holds a chunk.
                    unsafe { load(dtype, at, 1, len, buffers.0[i].as_mut_ptr()) };
                    buffers.0[i].as_mut_ptr()
                };
            }
            // SAFETY: the runs lie inside the tensors; tasks cover disjoint elements, and `shares_memory` found that what is
            // written shares no memory with anything else.
            unsafe { T::update(self.update, runs, len) };
            for i in (0..N).filter(|&i| i != GRAD && self.starts[i].1 != T::DTYPE) {
                let (start, dtype) = self.starts[i];
                // SAFETY: as for `load`.
                unsafe { store(dtype, start.at(from * dtype.size()), 1, len, buffers.0[i].as_ptr()) };
            }
        }
    }
    fn write_back(&self) -> Result<()> {
        let Some(copies) = &self.copies else { return Ok(()) };
        let written = self.tensors.iter().zip(copies).enumerate().filter(|&(i, (t, own))| i != GRAD && !t.same(own));
        written.map(|(_, pair)| pair).try_for_each(|(t, own)| t.copy_raw(own))
    }
}

/// A run of elements of each tensor, as `AnyUpdate::narrow` describes it.
struct Elements<U, T, const N: usize> {
    update: U,
    runs: [*mut T; N],
    len: usize,
}

impl<U: Update<N>, T: Float, const N: usize> simd::Kernel for Elements<U, T, N> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let (rule, runs) = (self.update.rule::<T>(), self.runs);
        let whole = self.len - self.len % BLOCK;
        for from in (0..whole).step_by(BLOCK) {
            let (mut old, mut new) = ([[T::ZERO; BLOCK]; N], [[T::ZERO; BLOCK]; N]);
            for (block, run) in old.iter_mut().zip(runs) {
                // SAFETY: a run has `len` elements, and `from + BLOCK` are no more than these.
                unsafe { std::ptr::copy_nonoverlapping(run.wrapping_add(from), block.as_mut_ptr(), BLOCK) };
            }
            for i in 0..BLOCK {
                let values = rule(std::array::from_fn(|k| old[k][i]));
                (0..N).for_each(|k| new[k][i] = values[k]);
            }
            for k in (0..N).filter(|&k| k != GRAD) {
                // SAFETY: as above; nobody else reads or writes these elements.
                unsafe { std::ptr::copy_nonoverlapping(new[k].as_ptr(), runs[k].wrapping_add(from), BLOCK) };
            }
        }
        for i in whole..self.len {
            // SAFETY: as above.
            let values = rule(runs.map(|run| unsafe { run.wrapping_add(i).read() }));
            for k in (0..N).filter(|&k| k != GRAD) {
                // SAFETY: as above.
                unsafe { runs[k].wrapping_add(i).write(values[k]) };
            }
        }
    }
}

/// The bytes that a tensor reaches: where they are, and whether they are written.
struct Span {
    /// What the addresses count in: host memory, or a buffer of the GPU.
    space: usize,
    start: usize,
    end: usize,
    written: bool,
}

impl Span {
    fn new(t: &Tensor, written: bool) -> Result<Span> {
        let (space, base) = match t.storage().buffer() {
            Buffer::Cpu(_) => (0, t.ptr()? as usize),
            Buffer::Meta(_) => (0, 0),
            Buffer::Gpu(b) => (std::ptr::from_ref(b) as usize, t.layout().offset * t.dtype().size()),
        };
        let reach = t.layout().end() - t.layout().offset;
        Ok(Span { space, start: base, end: base + reach * t.dtype().size(), written })
    }
}

/// Whether a tensor that is written reaches over memory of another tensor.
fn shares_memory<const N: usize>(items: &[Item<N>]) -> Result<bool> {
    let mut spans = reserve::room(items.len() * N)?;
    for item in items {
        for (i, t) in item.tensors.iter().enumerate() {
            spans.push(Span::new(t, i != GRAD)?);
        }
    }
    spans.retain(|s| s.start < s.end);
    spans.sort_unstable_by_key(|s| (s.space, s.start));
    let (mut space, mut end, mut end_of_written) = (0, 0, 0);
    Ok(spans.iter().any(|s| {
        if s.space != space {
            (space, end, end_of_written) = (s.space, 0, 0);
        }
        let shared = s.start < if s.written { end } else { end_of_written };
        end = end.max(s.end);
        end_of_written = if s.written { end_of_written.max(s.end) } else { end_of_written };
        shared
    }))
}
