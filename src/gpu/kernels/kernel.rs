//! A kernel call outside the elementwise family, put together from operands, walks and numbers.
//!
//! An operand `x` gives the template `read_x(i)`, `write_x(i, v)` and the hole `{{x}}` (its offset); a walk `w`
//! gives `walk_w(e)`, the element offset of the linear index `e` over some dimensions; a number gives a hole.
//! What shapes the code (dtypes, ranks, chosen expressions) is in the key; everything else is a parameter.

use super::element::{self, Access, lanes};
use super::params::{GROUP, declare_params, scalar_from, scalar_words, u32_param, word};
use super::template::{Compute, fill, render};
use super::view::View;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::gpu::driver::{Driver, Key, Launch, Params, Shader, too_large};
use crate::layout::{Dims, coalesce};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt::Write;

/// Boxed, because what it holds is large and every step of putting it together hands it on.
pub(super) struct Kernel<'a>(Box<Draft<'a>>);

struct Draft<'a> {
    family: &'static str,
    template: &'static str,
    compute: Compute,
    operands: SmallVec<[Operand<'a>; 6]>,
    walks: SmallVec<[Walk; 6]>,
    numbers: SmallVec<[(&'static str, Number); 16]>,
    texts: SmallVec<[(&'static str, Cow<'static, str>); 8]>,
    parts: SmallVec<[(&'static str, Part<'a>); 2]>,
    faulting: bool,
    constants: SmallVec<[(&'static str, usize); 6]>,
    variant: &'static str,
}

/// A larger piece of code: a text, or what writes it where a pipeline is built.
enum Part<'a> {
    Text(Cow<'static, str>),
    Made(&'a dyn Fn() -> String),
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

impl<'a> Kernel<'a> {
    pub fn new(family: &'static str, template: &'static str, compute: Compute) -> Kernel<'a> {
        Kernel(Box::new(Draft {
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
        }))
    }
    /// An operand that is read; its elements come in the kernel's compute type.
    pub fn read(self, name: &'static str, view: View<'a>) -> Self {
        let compute = self.0.compute;
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
        let compute = self.0.compute;
        self.operand(name, view, access, Form::Value(compute))
    }
    /// An output whose elements several invocations may update at once
    /// (`update_{name}(i, v)`), by the template's `combine(old, v)`; up to 32 bits wide.
    pub fn update(self, name: &'static str, view: View<'a>) -> Self {
        let compute = self.0.compute;
        self.operand(name, view, Access::Update, Form::Value(compute))
    }
    /// An output of indices (int64 as two words, int32 as one).
    pub fn write_index(self, name: &'static str, view: View<'a>) -> Self {
        self.operand(name, view, Access::Write, Form::Index)
    }
    fn operand(mut self, name: &'static str, view: View<'a>, access: Access, form: Form) -> Self {
        self.0.operands.push(Operand { name, view, access, form });
        self
    }
    /// Binds the fault block of the operands' device as `buffer_fault`; the host looks at it when it next waits.
    pub fn faulting(mut self) -> Result<Self> {
        let buffer = self.driver()?.fault_block()?;
        let view = View { buffer, dtype: DType::U32, shape: &[4], strides: &[1], offset: 0 };
        self.0.faulting = true;
        Ok(self.operand("fault", view, Access::Atomic, Form::Words))
    }
    /// The device of the operands that have been named so far.
    fn driver(&self) -> Result<&'static Driver> {
        let first = self.0.operands.first().ok_or_else(|| Error::internal("a kernel without an operand"))?;
        Ok(first.view.driver())
    }
    /// `walk_{name}(e)`: offsets over a shape. Adjacent dimensions are merged.
    pub fn walk(mut self, name: &'static str, shape: &[usize], strides: &[usize]) -> Self {
        let (shape, [strides]) = coalesce(shape, [strides]);
        self.0.walks.push(Walk { name, shape, strides });
        self
    }
    pub fn number(mut self, name: &'static str, value: usize) -> Result<Self> {
        self.0.numbers.push((name, Number::Word(u32_param(value)?)));
        Ok(self)
    }
    pub fn bits(mut self, name: &'static str, value: u32) -> Self {
        self.0.numbers.push((name, Number::Word(value)));
        self
    }
    pub fn scalar(mut self, name: &'static str, value: Scalar) -> Self {
        self.0.numbers.push((name, Number::Scalar(scalar_words(value, self.0.compute))));
        self
    }
    /// Declares the iterations of all loops of an invocation together, which a software adapter limits.
    pub fn iterations(self, iterations: usize) -> Result<Self> {
        let most = self.driver()?.caps().max_iterations;
        if iterations <= most {
            return Ok(self);
        }
        Err(Error::runtime(format!(
            "{}: the rows are too long for a software adapter, whose loops end after {most} iterations. Use device='cpu'.",
            self.0.family,
        )))
    }
    /// Code that fills a hole; it belongs to the key.
    pub fn text(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.0.texts.push((name, value.into()));
        self
    }

    /// A number that the code is compiled with; the name of the variant stands for it in the key.
    pub fn constant(mut self, name: &'static str, value: usize) -> Self {
        self.0.constants.push((name, value));
        self
    }
    pub fn variant(mut self, variant: &'static str) -> Self {
        self.0.variant = variant;
        self
    }
    /// A larger piece of code that fills a hole; the name of the variant stands for it in the key.
    pub fn part(mut self, variant: &'static str, name: &'static str, code: impl Into<Cow<'static, str>>) -> Self {
        self.0.parts.push((name, Part::Text(code.into())));
        self.0.variant = variant;
        self
    }
    /// The same for code that is written only where it is needed.
    pub fn made(mut self, variant: &'static str, name: &'static str, code: &'a dyn Fn() -> String) -> Self {
        self.0.parts.push((name, Part::Made(code)));
        self.0.variant = variant;
        self
    }

    /// Runs an invocation for each of `units`, in groups of 256.
    pub fn launch(self, units: usize) -> Result<()> {
        self.launch_groups(units.div_ceil(GROUP))
    }
    /// Runs at least `groups` workgroups.
    pub fn launch_groups(mut self, groups: usize) -> Result<()> {
        // Reads are bound first.
        self.0.operands.sort_by_key(|o| o.access != Access::Read);
        let driver = self.driver()?;
        self.0.check_operands(driver)?;
        driver.launch(&self.0.prepare(groups)?)
    }
}

impl Draft<'_> {
    /// The dispatch as a value.
    fn prepare(&self, groups: usize) -> Result<Launch<'_>> {
        let mut params = Params::from_slice(&[0, 0, 0, 0]);
        let mut binds = SmallVec::new();
        for operand in &self.operands {
            let (bind, offset) = operand.view.bind().ok_or_else(too_large)?;
            binds.push(bind);
            params.push(u32_param(offset)?);
        }
        for (_, number) in &self.numbers {
            match number {
                Number::Word(w) => params.push(*w),
                Number::Scalar(pair) => params.extend(*pair),
            }
        }
        for walk in &self.walks {
            for &n in walk.shape.iter().chain(&walk.strides) {
                params.push(u32_param(n)?);
            }
        }
        let reads = self.operands.iter().filter(|o| o.access == Access::Read).count();
        Ok(Launch { key: self.key(), shader: self, binds, reads, params, groups, may_fault: self.faulting })
    }

    /// Refuses operands of two devices, and one that is read from a buffer which another one writes.
    fn check_operands(&self, driver: &'static Driver) -> Result<()> {
        let written = |id| self.operands.iter().any(|o| o.access != Access::Read && o.view.buffer.id() == id);
        for o in &self.operands {
            if !std::ptr::eq(o.view.driver(), driver) {
                return Err(Error::internal(format!("{}: operand {} is on another device", self.family, o.name)));
            }
            if o.access == Access::Read && written(o.view.buffer.id()) {
                let message = format!("{}: operand {} shares its buffer with an output", self.family, o.name);
                return Err(Error::internal(message));
            }
        }
        Ok(())
    }

    /// What the source depends on. Parts and constants are not in it: the variant stands for them.
    fn key(&self) -> Key {
        let mut key = Key::default();
        key.fixed(self.family);
        key.fixed(self.variant);
        let counts = [self.compute as usize, self.operands.len(), self.walks.len(), self.texts.len()];
        key.word(counts.iter().fold(0, |word, &n| word << 16 | n as u64));
        for o in &self.operands {
            let form = match o.form {
                Form::Value(compute) => compute as u64,
                Form::Index => 0xfe,
                Form::Words => 0xff,
            };
            key.fixed(o.name);
            key.word((o.view.dtype as u64) << 16 | (o.access as u64) << 8 | form);
        }
        for w in &self.walks {
            key.fixed(w.name);
            key.word((w.shape.len() as u64) << 1 | w.is_unit() as u64);
        }
        for (name, text) in &self.texts {
            key.fixed(name);
            match text {
                Cow::Borrowed(text) => key.fixed(text),
                Cow::Owned(text) => key.made(text),
            }
        }
        key
    }
}

impl Shader for Draft<'_> {
    fn name(&self) -> String {
        let mut name = format!("{} {} in {}", self.family, self.variant, self.compute.name());
        for o in &self.operands {
            let mode = match o.access {
                Access::Read => "",
                Access::Write => " written",
                Access::Atomic => " atomic",
                Access::Update => " updated",
            };
            let as_index = if o.form == Form::Index { " index" } else { "" };
            let _ = write!(name, ", {} {}{as_index}{mode}", o.name, o.view.dtype.short());
        }
        for w in &self.walks {
            let unit = if w.is_unit() { "unit" } else { "strided" };
            let _ = write!(name, ", {} {unit} {}", w.name, w.shape.len());
        }
        for (hole, text) in &self.texts {
            let _ = write!(name, ", {hole}: {text}");
        }
        name
    }

    fn source(&self) -> String {
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
        holes.extend(self.parts.iter().map(|(name, part)| match part {
            Part::Text(text) => (*name, text.to_string()),
            Part::Made(code) => (*name, code()),
        }));
        let declared = declare_params(at) + &code;
        holes.push(("declarations", declared));
        let holes: Vec<(&str, &str)> = holes.iter().map(|(n, t)| (*n, t.as_str())).collect();
        // Code that fills a hole may have holes of its own, and so may what fills those.
        render(&fill(&fill(self.template, &holes), &holes), self.compute, &holes)
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
