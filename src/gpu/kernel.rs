//! A kernel call outside the elementwise family, put together from operands, walks and numbers.
//!
//! An operand `x` gives the template `read_x(i)`, `write_x(i, v)` and the hole `{{x}}` (its offset); a walk `w`
//! gives `walk_w(e)`, the element offset of the linear index `e` over some dimensions; a number gives a hole.
//! What shapes the code (dtypes, ranks, chosen expressions) is in the key; everything else is a parameter.

use super::GpuBuffer;
use super::context::{blocking, gpu};
use super::element::{self, Access, lanes};
use super::launch::{
    GROUP, Params, bind, declare_params, grid_of_groups, launch, narrow, scalar_from, scalar_words, too_large, word,
};
use super::map::copy;
use super::template::{Compute, render};
use super::transfer::read_faults;
use super::types::{Input, View};
use super::validate;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::{Dims, coalesce, contiguous_strides};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt::Write;

pub(super) struct Kernel<'a> {
    family: &'static str,
    template: &'static str,
    compute: Compute,
    operands: SmallVec<[Operand<'a>; 6]>,
    walks: SmallVec<[Walk; 6]>,
    numbers: SmallVec<[(&'static str, Number); 16]>,
    texts: SmallVec<[(&'static str, Cow<'static, str>); 8]>,
    parts: SmallVec<[(&'static str, Cow<'static, str>); 2]>,
    faulting: bool,
    constants: SmallVec<[(&'static str, usize); 6]>,
    variant: &'static str,
}

struct Operand<'a> {
    name: &'static str,
    view: View<'a>,
    access: Access,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Elements in this compute type.
    Value(Compute),
    /// Integers as i32, whatever their width; `i32::MIN` for what does not fit.
    Index,
    /// Atomic words of no dtype.
    Words,
}

#[derive(Clone, Copy)]
enum Number {
    Word(u32),
    /// A number of the kernel's compute type.
    Scalar([u32; 2]),
}

struct Walk {
    name: &'static str,
    shape: Dims,
    strides: Dims,
}

/// A contiguous copy that replaces an operand which shares its buffer with an output.
struct Stage {
    buffer: GpuBuffer,
    shape: Dims,
    strides: Dims,
}

impl<'a> Kernel<'a> {
    pub fn new(family: &'static str, template: &'static str, compute: Compute) -> Kernel<'a> {
        Kernel {
            family,
            template,
            compute,
            operands: SmallVec::new(),
            walks: SmallVec::new(),
            numbers: SmallVec::new(),
            texts: SmallVec::new(),
            parts: SmallVec::new(),
            faulting: false,
            constants: SmallVec::new(),
            variant: "",
        }
    }
    /// An operand that is read; its elements come in the kernel's compute type.
    pub fn read(self, name: &'static str, view: View<'a>) -> Self {
        let compute = self.compute;
        self.operand(name, view, Access::Read, Form::Value(compute))
    }
    pub fn read_as(self, name: &'static str, view: View<'a>, compute: Compute) -> Self {
        self.operand(name, view, Access::Read, Form::Value(compute))
    }
    /// An operand of indices.
    pub fn index(self, name: &'static str, view: View<'a>) -> Self {
        self.operand(name, view, Access::Read, Form::Index)
    }
    /// An operand that is written (and may be read), one element per invocation.
    pub fn write(self, name: &'static str, view: View<'a>) -> Self {
        let access = if lanes(view.dtype) > 1 { Access::Atomic } else { Access::Write };
        let compute = self.compute;
        self.operand(name, view, access, Form::Value(compute))
    }
    /// An output whose elements several invocations may update at once
    /// (`update_{name}(i, v)`), by the template's `combine(old, v)`; up to 32 bits wide.
    pub fn update(self, name: &'static str, view: View<'a>) -> Self {
        let compute = self.compute;
        self.operand(name, view, Access::Update, Form::Value(compute))
    }
    /// An output of indices (int64 as two words, int32 as one).
    pub fn write_index(self, name: &'static str, view: View<'a>) -> Self {
        self.operand(name, view, Access::Write, Form::Index)
    }
    fn operand(mut self, name: &'static str, view: View<'a>, access: Access, form: Form) -> Self {
        self.operands.push(Operand { name, view, access, form });
        self
    }
    /// Binds the fault block as `buffer_fault`; the host looks at it when it next waits.
    pub fn faulting(mut self) -> Result<Self> {
        static HOLLOW: GpuBuffer = GpuBuffer::hollow(16);
        let block = if validate::dry() { &HOLLOW } else { gpu()?.fault_block()? };
        let view = View { buffer: block, dtype: DType::U32, shape: &[4], strides: &[1], offset: 0 };
        self.faulting = true;
        Ok(self.operand("fault", view, Access::Atomic, Form::Words))
    }
    /// `walk_{name}(e)`: offsets over a shape. Adjacent dimensions are merged.
    pub fn walk(mut self, name: &'static str, shape: &[usize], strides: &[usize]) -> Self {
        let (shape, [strides]) = coalesce(shape, [strides]);
        self.walks.push(Walk { name, shape, strides });
        self
    }
    pub fn number(mut self, name: &'static str, value: usize) -> Result<Self> {
        self.numbers.push((name, Number::Word(narrow(value)?)));
        Ok(self)
    }
    pub fn bits(mut self, name: &'static str, value: u32) -> Self {
        self.numbers.push((name, Number::Word(value)));
        self
    }
    pub fn scalar(mut self, name: &'static str, value: Scalar) -> Self {
        self.numbers.push((name, Number::Scalar(scalar_words(value, self.compute))));
        self
    }
    /// Says how often the loops of an invocation turn in all, which a software adapter limits.
    pub fn turns(self, turns: usize) -> Result<Self> {
        if validate::dry() || turns <= gpu()?.caps.max_turns {
            return Ok(self);
        }
        Err(Error::runtime(format!(
            "{}: the rows are too long for a software adapter, whose loops end after {} turns. Use device='cpu'.",
            self.family,
            gpu()?.caps.max_turns
        )))
    }
    /// Code that fills a hole; it belongs to the key.
    pub fn text(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.texts.push((name, value.into()));
        self
    }

    /// A number that the code is compiled with; the name of the variant stands for it in the key.
    pub fn constant(mut self, name: &'static str, value: usize) -> Self {
        self.constants.push((name, value));
        self
    }
    pub fn variant(mut self, variant: &'static str) -> Self {
        self.variant = variant;
        self
    }
    /// A larger piece of code that fills a hole; the name of the variant stands for it in the key.
    pub fn part(mut self, variant: &'static str, name: &'static str, code: impl Into<Cow<'static, str>>) -> Self {
        self.parts.push((name, code.into()));
        self.variant = variant;
        self
    }

    /// Runs an invocation for each of `units`, in groups of 256.
    pub fn launch(self, units: usize) -> Result<()> {
        self.launch_groups(units.div_ceil(GROUP as usize))
    }
    /// Runs at least `groups` workgroups.
    pub fn launch_groups(mut self, groups: usize) -> Result<()> {
        // Reads are bound first.
        self.operands.sort_by_key(|o| o.access != Access::Read);
        if let Some(name) = self.clash() {
            return Err(Error::internal(format!("{}: operand {name} shares its buffer with an output", self.family)));
        }
        if validate::dry() {
            return validate::check(&self.key(), &self.source());
        }
        let gpu = gpu()?;
        let groups = grid_of_groups(gpu, groups)?;
        let mut params = Params::from_slice(&[0, 0, 0, 0]);
        let mut binds = SmallVec::<[_; 6]>::new();
        for operand in &self.operands {
            let (b, offset) = bind(gpu, &operand.view).ok_or_else(too_large)?;
            binds.push(b);
            params.push(narrow(offset)?);
        }
        for (_, number) in &self.numbers {
            match number {
                Number::Word(w) => params.push(*w),
                Number::Scalar(pair) => params.extend(*pair),
            }
        }
        for walk in &self.walks {
            for &n in walk.shape.iter().chain(&walk.strides) {
                params.push(narrow(n)?);
            }
        }
        let reads = self.operands.iter().filter(|o| o.access == Access::Read).count();
        let counts = (reads, self.operands.len() - reads);
        launch(gpu, &self.key(), || self.source(), counts, &binds, &params, groups)?;
        if self.faulting {
            gpu.stream().watch_faults();
            if blocking() {
                return read_faults(gpu);
            }
        }
        Ok(())
    }

    /// The first operand that is read from a buffer which another one writes.
    fn clash(&self) -> Option<&'static str> {
        let written = |id| self.operands.iter().any(|o| o.access != Access::Read && o.view.buffer.id() == id);
        self.operands.iter().find(|o| o.access == Access::Read && written(o.view.buffer.id())).map(|o| o.name)
    }

    pub fn key(&self) -> String {
        let mut key = String::with_capacity(128);
        let _ = write!(key, "{} {} in {}", self.family, self.variant, self.compute.name());
        for o in &self.operands {
            let mode = match o.access {
                Access::Read => "",
                Access::Write => " written",
                Access::Atomic => " atomic",
                Access::Update => " updated",
            };
            let as_index = if o.form == Form::Index { " index" } else { "" };
            let _ = write!(key, ", {} {}{as_index}{mode}", o.name, o.view.dtype.short());
        }
        for w in &self.walks {
            let unit = if w.is_unit() { "unit" } else { "strided" };
            let _ = write!(key, ", {} {unit} {}", w.name, w.shape.len());
        }
        for (name, text) in &self.texts {
            let _ = write!(key, ", {name}: {text}");
        }
        key
    }

    pub fn source(&self) -> String {
        let mut at = 4;
        let mut holes: Vec<(&str, String)> = Vec::new();
        let mut code = String::new();
        for (i, o) in self.operands.iter().enumerate() {
            holes.push((o.name, word(at)));
            code += &o.code(i + 1);
            at += 1;
        }
        for (name, number) in &self.numbers {
            let (text, words) = match number {
                Number::Word(_) => (word(at), 1),
                Number::Scalar(_) => (scalar_from(at, self.compute), 2),
            };
            holes.push((name, text));
            at += words;
        }
        for walk in &self.walks {
            code += &walk.code(at);
            at += 2 * walk.shape.len();
        }
        holes.extend(self.texts.iter().map(|t| (t.0, t.1.to_string())));
        holes.extend(self.constants.iter().map(|c| (c.0, c.1.to_string())));
        holes.extend(self.parts.iter().map(|p| (p.0, p.1.to_string())));
        let declared = declare_params(at) + &code;
        holes.push(("declarations", declared));
        let holes: Vec<(&str, &str)> = holes.iter().map(|(n, t)| (*n, t.as_str())).collect();
        // Twice: chosen expressions may have holes of their own.
        render(&super::template::fill(self.template, &holes), self.compute, &holes)
    }
}

impl Operand<'_> {
    fn code(&self, binding: usize) -> String {
        let var = format!("buffer_{}", self.name);
        match self.form {
            Form::Words => element::declare(binding, &var, self.view.dtype, self.access),
            Form::Value(compute) if self.access == Access::Update => {
                element::updater(binding, self.name, &var, self.view.dtype, compute)
            }
            Form::Value(compute) => {
                let mut code = element::declare(binding, &var, self.view.dtype, self.access);
                code += &element::reader(self.name, &var, self.view.dtype, self.access, compute);
                if self.access == Access::Write || (self.access == Access::Atomic && lanes(self.view.dtype) > 1) {
                    code += &element::writer(self.name, &var, self.view.dtype, compute);
                }
                code
            }
            Form::Index if self.view.dtype == DType::I64 => {
                element::index_pairs(binding, self.name, &var, self.access == Access::Read)
            }
            Form::Index => {
                let mut code = element::declare(binding, &var, self.view.dtype, self.access);
                code += &element::reader(self.name, &var, self.view.dtype, self.access, Compute::I32);
                if self.access == Access::Write && lanes(self.view.dtype) == 1 {
                    code += &element::writer(self.name, &var, self.view.dtype, Compute::I32);
                }
                code
            }
        }
    }
}

impl Walk {
    fn is_unit(&self) -> bool {
        self.shape.is_empty() || (self.shape.len() == 1 && self.strides[0] == 1)
    }
    /// The function, and for a strided walk its shape and strides from the parameters.
    fn code(&self, at: usize) -> String {
        let rank = self.shape.len();
        let shape: Vec<String> = (0..rank).map(|d| word(at + d)).collect();
        let strides: Vec<String> = (0..rank).map(|d| word(at + rank + d)).collect();
        let name = self.name;
        if self.is_unit() {
            return format!("fn walk_{name}(e: u32) -> u32 {{ return e; }}\n");
        }
        let mut body = String::new();
        let mut terms = Vec::new();
        let mut rest = "e".to_string();
        for d in (1..shape.len()).rev() {
            let _ = writeln!(body, "    let q{d} = {rest} / {};", shape[d]);
            terms.push(format!("({rest} - q{d} * {}) * {}", shape[d], strides[d]));
            rest = format!("q{d}");
        }
        terms.push(format!("{rest} * {}", strides[0]));
        format!("fn walk_{name}(e: u32) -> u32 {{\n{body}    return {};\n}}\n", terms.join(" + "))
    }
}

/// Calls `f` with views of which none is read from the buffer of an output: those that are, are copied first.
pub(super) fn apart(inputs: &mut [View], outputs: &[View], f: &mut dyn FnMut(&[View]) -> Result<()>) -> Result<()> {
    let clashes = |v: &View| outputs.iter().any(|o| o.buffer.id() == v.buffer.id());
    let mut stages: SmallVec<[Option<Stage>; 4]> = SmallVec::new();
    for view in inputs.iter() {
        stages.push(if clashes(view) { Some(staged(view)?) } else { None });
    }
    let views: SmallVec<[View; 4]> = inputs
        .iter()
        .zip(&stages)
        .map(|(view, stage)| match stage {
            Some(s) => View { buffer: &s.buffer, dtype: view.dtype, shape: &s.shape, strides: &s.strides, offset: 0 },
            None => *view,
        })
        .collect();
    f(&views)
}

fn staged(view: &View) -> Result<Stage> {
    let (shape, strides) = (Dims::from(view.shape), contiguous_strides(view.shape));
    let buffer = GpuBuffer::alloc(view.numel() * view.dtype.size())?;
    copy(&Input::View(*view), &View { buffer: &buffer, strides: &strides, offset: 0, ..*view })?;
    Ok(Stage { buffer, shape, strides })
}
