//! From the text of a plan back to its steps. Whatever the text says, what comes out can be run: every number refers to a
//! tensor that is there by then, every argument has the kind that its op declares.

use super::container::MOST_DIMS;
use super::json::{self, Json, Map};
use crate::compile::recorded::Recorded;
use crate::compile::step::{Arg, Source, Step, Variant};
use crate::device::{Device, Name};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::layout::{Format, Layout, checked_numel};
use crate::op::generator::State;
use crate::op::tracer::Form;
use crate::op::{Body, Forms, Generator, Ints, Kind, Op, Param, Value};
use crate::rt::reserve::try_list;
use crate::tensor::{Meta, Tensor};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Bytes from two hexadecimal digits each.
fn bytes_of(text: &str) -> Result<Vec<u8>> {
    let digit = |c: u8| (c as char).to_digit(16).ok_or_else(|| bad("the state of a generator is not hexadecimal"));
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    try_list(pairs.iter().map(|[high, low]| Ok((digit(*high)? << 4 | digit(*low)?) as u8)))
}

/// A tensor that a plan expects of its caller.
#[derive(Clone, Debug)]
pub struct Input {
    pub name: String,
    pub dtype: DType,
    pub layout: Layout,
    pub device: Device,
    /// The earlier input that has to be the same tensor.
    pub same: Option<usize>,
    /// The earlier input whose memory it has to share, and how many bytes after it it has to begin.
    pub shares: Option<(usize, isize)>,
}

/// What a text says.
pub struct Decoded {
    pub recorded: Recorded,
    pub inputs: Vec<Input>,
    /// The tensors of the file, by name.
    pub tensors: Vec<(String, Tensor)>,
    /// The defaults under which the call was recorded.
    pub dtype: DType,
    pub device: Device,
}

#[cold]
fn bad(what: impl Into<String>) -> Error {
    Error::value(what)
}

/// Reads a text. `memories` are the tensors of the file; `target`, where given, is the device of everything.
pub fn decode(graph: &str, memories: HashMap<String, Tensor>, target: Option<Device>) -> Result<Decoded> {
    let parsed = json::parse(graph)?;
    let top = Fields::of(&parsed, "the plan")?;
    let mut d = Decoder {
        target,
        memories,
        placed: HashMap::new(),
        generators: Vec::new(),
        known: Vec::new(),
        given: Vec::new(),
    };
    let (dtype, device) = (top.dtype("dtype")?, d.device(top.text("device")?)?);
    if !dtype.is_float() {
        return Err(bad(format!("the default dtype is {dtype}; expected one of floats")));
    }
    let inputs = top.list("inputs")?.iter().enumerate().map(|(i, v)| d.input(i, v)).collect::<Result<Vec<_>>>()?;
    for value in top.list("generators")? {
        let g = Fields::of(value, "a generator")?;
        let generator = Generator::new(0, d.device(g.text("device")?)?);
        generator.set_state(State::from_bytes(&bytes_of(g.text("state")?)?, generator.device)?);
        d.generators.push(Arc::new(generator));
    }
    let tensors = d.tensors(top.list("tensors")?)?;
    let sources = d.sources(top.list("sources")?, inputs.len(), &tensors)?;
    let steps = top.list("steps")?.iter().map(|v| d.step(v)).collect::<Result<Vec<_>>>()?;
    let results = top.list("results")?.iter().map(|v| d.known(v)).collect::<Result<Vec<_>>>()?;
    let read_grads = sources.iter().filter_map(|s| if let Source::GradOf(of) = s { Some(*of) } else { None }).collect();
    let graphs = results.iter().map(|_| None).collect();
    let recorded = Recorded {
        sources,
        steps,
        looks: Vec::new(),
        results,
        graphs,
        read_grads,
        variant: Variant::Unrecorded,
        fixed: Vec::new(),
        questions: Vec::new(),
    };
    Ok(Decoded { recorded, inputs, tensors, dtype, device })
}

/// The fields of a JSON object, and what it is in messages.
struct Fields<'a>(&'a Map<'a>, &'a str);

impl<'a> Fields<'a> {
    fn of(value: &'a Json<'a>, what: &'a str) -> Result<Fields<'a>> {
        value.as_map().map(|m| Fields(m, what)).ok_or_else(|| bad(format!("{what} is no JSON object")))
    }
    fn find(&self, key: &str) -> Option<&'a Json<'a>> {
        self.0.get(key)
    }
    fn get(&self, key: &str) -> Result<&'a Json<'a>> {
        self.find(key).ok_or_else(|| bad(format!("{} lacks '{key}'", self.1)))
    }
    fn wrong(&self, key: &str, expected: &str) -> Error {
        bad(format!("{}: '{key}' is not {expected}", self.1))
    }
    fn text(&self, key: &str) -> Result<&'a str> {
        self.get(key)?.as_str().ok_or_else(|| self.wrong(key, "a string"))
    }
    fn list(&self, key: &str) -> Result<&'a [Json<'a>]> {
        self.get(key)?.as_list().ok_or_else(|| self.wrong(key, "a list"))
    }
    fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T> {
        self.get(key)?.as_integer().ok_or_else(|| self.wrong(key, "an integer in range"))
    }
    fn optional(&self, key: &str) -> Result<Option<usize>> {
        self.find(key).map(|_| self.number(key)).transpose()
    }
    fn flag(&self, key: &str) -> Result<bool> {
        match self.find(key) {
            None => Ok(false),
            Some(Json::Bool(b)) => Ok(*b),
            Some(_) => Err(self.wrong(key, "a bool")),
        }
    }
    fn dtype(&self, key: &str) -> Result<DType> {
        dtype_of(self.text(key)?)
    }
    /// A layout whose sizes and strides fit in memory, at an offset.
    fn layout(&self, offset: usize) -> Result<Layout> {
        let dims = |key: &str| {
            let list = self.list(key)?;
            let dims = list.iter().map(Json::as_count).collect::<Option<_>>();
            dims.filter(|_| list.len() <= MOST_DIMS).ok_or_else(|| self.wrong(key, "a list of sizes"))
        };
        let layout = Layout { shape: dims("shape")?, strides: dims("strides")?, offset };
        let counted = checked_numel(&layout.shape).is_ok();
        match counted && layout.shape.len() == layout.strides.len() && layout.fits(isize::MAX as usize / 16) {
            true => Ok(layout),
            false => Err(self.wrong("strides", "a list of strides for the shape")),
        }
    }
    /// Refuses what this version does not know, since it may change what the rest means.
    fn only(&self, keys: &[&str]) -> Result<()> {
        match self.0.keys().find(|k| !keys.contains(&k.as_ref())) {
            Some(key) => Err(bad(format!("{} has an unknown field '{key}'", self.1))),
            None => Ok(()),
        }
    }
}

fn dtype_of(name: &str) -> Result<DType> {
    DType::ALL.into_iter().find(|d| d.name() == name).ok_or_else(|| bad(format!("there is no dtype '{name}'")))
}

fn op_of(name: &str) -> Result<&'static Op> {
    static OPS: LazyLock<HashMap<&'static str, &'static Op>> =
        LazyLock::new(|| crate::ops::all().map(|op| (op.name(), op)).collect());
    let version = env!("CARGO_PKG_VERSION");
    OPS.get(name).copied().ok_or_else(|| bad(format!("the op '{name}' is not known to rustgrad {version}")))
}

struct Decoder {
    target: Option<Device>,
    memories: HashMap<String, Tensor>,
    /// Memories on the devices where tensors are.
    placed: HashMap<(String, String), Tensor>,
    generators: Vec<Arc<Generator>>,
    /// Whether the tensor of each number is there by now.
    known: Vec<bool>,
    /// Whether it may be the handle of an input or of a tensor of the file.
    given: Vec<bool>,
}

impl Decoder {
    fn device(&self, name: &str) -> Result<Device> {
        let device = Name::parse(name).and_then(Name::device).map_err(|e| bad(e.to_string()))?;
        Ok(self.target.filter(|_| device != Device::Meta).unwrap_or(device))
    }
    fn input(&self, i: usize, value: &Json) -> Result<Input> {
        let f = Fields::of(value, "an input")?;
        let earlier = |key: &str| match f.optional(key)? {
            Some(n) if n >= i => Err(f.wrong(key, "an earlier input")),
            found => Ok(found),
        };
        let distance = f.find("distance").map_or(Ok(0), |_| f.number("distance"))?;
        Ok(Input {
            name: f.text("name")?.to_string(),
            dtype: f.dtype("dtype")?,
            layout: f.layout(0)?,
            device: self.device(f.text("device")?)?,
            same: earlier("same")?,
            shares: earlier("shares")?.map(|n| (n, distance)),
        })
    }

    /// A memory of the file on a device; the tensors that show it share it.
    fn memory(&mut self, name: &str, device: Device) -> Result<Tensor> {
        let host = self.memories.get(name).ok_or_else(|| bad(format!("the file has no tensor '{name}'")))?;
        if device == Device::Cpu {
            return Ok(host.clone());
        }
        let key = (name.to_string(), device.to_string());
        if let Some(t) = self.placed.get(&key) {
            return Ok(t.clone());
        }
        let there = Tensor::zeros(host.shape(), host.dtype(), device)?;
        there.copy_raw(host)?;
        self.placed.insert(key, there.clone());
        Ok(there)
    }
    fn tensors(&mut self, list: &[Json]) -> Result<Vec<(String, Tensor)>> {
        let mut made: Vec<(String, Tensor)> = Vec::new();
        let mut grads = Vec::new();
        for value in list {
            let f = Fields::of(value, "a tensor")?;
            let (name, dtype, layout) = (f.text("name")?, f.dtype("dtype")?, f.layout(f.number("offset")?)?);
            let device = self.device(f.text("device")?)?;
            if device == Device::Meta {
                return Err(bad(format!("the tensor '{name}' is on the meta device")));
            }
            let memory = self.memory(f.text("memory")?, device)?;
            if !layout.fits(memory.storage().bytes() / dtype.size()) {
                return Err(bad(format!("the tensor '{name}' does not lie within its memory")));
            }
            let t = Tensor::from_meta(Meta { storage: memory.storage().clone(), layout, dtype });
            // Bytes that become bools are 0 or 1.
            if dtype == DType::Bool && memory.dtype() != DType::Bool {
                return Err(bad(format!("the tensor '{name}' is bool over memory that is not")));
            }
            grads.extend(f.optional("grad")?.map(|g| (made.len(), g)));
            made.push((name.to_string(), t));
        }
        for &(of, grad) in &grads {
            let plain = grads.iter().all(|(other, _)| *other != grad);
            let g = made.get(grad).filter(|(_, g)| plain && g.shape() == made[of].1.shape());
            let (_, g) = g.ok_or_else(|| bad("a gradient is not one of the tensors"))?;
            made[of].1.set_grad(Some(g.clone()));
        }
        Ok(made)
    }
    fn sources(&mut self, list: &[Json], inputs: usize, tensors: &[(String, Tensor)]) -> Result<Vec<Source>> {
        let mut sources: Vec<Source> = Vec::new();
        for value in list {
            let source = match value {
                Json::Null => Source::Made,
                value => {
                    let f = Fields::of(value, "a source")?;
                    match (f.optional("input")?, f.optional("tensor")?, f.optional("grad_of")?) {
                        (Some(i), None, None) if i < inputs => Source::Input(i),
                        (None, Some(i), None) if i < tensors.len() => Source::Outside(tensors[i].1.clone()),
                        (None, None, Some(of)) if sources.get(of).is_some_and(has_grad) => Source::GradOf(of),
                        _ => return Err(bad("a source is no input and no tensor")),
                    }
                }
            };
            self.known.push(!matches!(source, Source::Made));
            self.given.push(matches!(source, Source::Input(_) | Source::Outside(_)));
            sources.push(source);
        }
        Ok(sources)
    }

    fn known_number(&self, n: Option<usize>) -> Result<usize> {
        n.filter(|&n| self.known.get(n) == Some(&true)).ok_or_else(|| bad("a step reads a tensor that is not there"))
    }
    fn known(&self, value: &Json) -> Result<usize> {
        self.known_number(value.as_count())
    }
    /// A number that gets its tensor now.
    fn define(&mut self, n: Option<usize>) -> Result<usize> {
        match n.and_then(|n| self.known.get_mut(n)) {
            Some(known) if !*known => *known = true,
            _ => return Err(bad("a step makes a tensor that is there already, or has no number")),
        }
        Ok(n.unwrap_or_default())
    }
    fn step(&mut self, value: &Json) -> Result<Step> {
        let f = Fields::of(value, "a step")?;
        if f.find("alias").is_some() {
            f.only(&["alias", "shift", "counted", "dtype", "shape", "strides", "result"])?;
            let of = self.known(f.get("alias")?)?;
            let (layout, dtype, shift) = (f.layout(0)?, f.dtype("dtype")?, f.number("shift")?);
            let result = self.define(f.optional("result")?)?;
            return Ok(Step::Alias { of, layout, shift, dtype, counted: f.flag("counted")?, result });
        }
        if f.find("set_grad").is_some() {
            f.only(&["set_grad", "to"])?;
            let leaf = self.known(f.get("set_grad")?)?;
            let grad = match f.get("to")? {
                Json::Null => None,
                n => Some(self.known(n)?),
            };
            // A chain of gradients of gradients would be as long as the file wants.
            if !self.given[leaf] || grad.is_some_and(|n| self.given[n]) {
                return Err(bad("a gradient is set of a tensor, or to one, that is not made for it"));
            }
            return Ok(Step::SetGrad { leaf, grad });
        }
        f.only(&["op", "form", "out", "draws", "args", "results"])?;
        self.call(&f)
    }
    fn call(&mut self, f: &Fields) -> Result<Step> {
        let op = op_of(f.text("op")?)?;
        let form = match f.find("form").map(|v| v.as_str()) {
            None => Form::Functional,
            Some(Some("in_place")) => Form::InPlace,
            Some(Some("out")) => Form::Out,
            _ => return Err(f.wrong("form", "'in_place' or 'out'")),
        };
        let changes_view = matches!(op.body, Body::View(_) | Body::ViewAs(_) | Body::Views(_));
        if form == Form::InPlace && (!op.forms.has(Forms::INPLACE | Forms::ONLY_INPLACE) || changes_view) {
            return Err(bad(format!("{} has no form in place", op.name())));
        }
        let args = self.args(op, &Fields::of(f.get("args")?, "the arguments of a step")?)?;
        let outs: Vec<usize> = match form {
            Form::Out => f.list("out")?.iter().map(|v| self.known(v)).collect::<Result<_>>()?,
            _ => Vec::new(),
        };
        let op = self.on_device(op)?;
        let makes =
            form == Form::Functional && (changes_view || matches!(op.body, Body::Elementwise(_) | Body::Kernel(_)));
        let given = !makes && args.iter().flat_map(Arg::tensors).any(|n| self.given[n]);
        let results = f.list("results")?.iter().map(|v| self.result(v, given)).collect::<Result<_>>()?;
        Ok(Step::Call { op, form, args, outs, results, grad: false, draws: f.flag("draws")?, in_step: false })
    }
    /// The op, or that whose steps it runs in one where no shader does that.
    fn on_device(&self, op: &'static Op) -> Result<&'static Op> {
        if op.runs_on_gpu() || !self.target.is_some_and(Device::is_gpu) {
            return Ok(op);
        }
        let is_whole = |o: &&Op| {
            let fused = if let Body::Decompose(d) = &o.body { d.fused } else { None };
            fused.is_some_and(|f| std::ptr::eq(f, op)) && o.sig.params().len() == op.sig.params().len()
        };
        crate::ops::all().find(is_whole).ok_or_else(|| {
            Error::not_implemented(format!(
                "{}: no shader for this op of the plan. Load the plan on the cpu, or save the function on the gpu.",
                op.name()
            ))
        })
    }
    /// The number of a result: a new one, or that of the tensor which the op wrote or returned.
    fn result(&mut self, value: &Json, given: bool) -> Result<usize> {
        let n = match self.known(value) {
            Ok(n) => n,
            Err(_) => self.define(value.as_count())?,
        };
        self.given[n] |= given;
        Ok(n)
    }
    /// All arguments of an op in their order, those left out as they are by default.
    fn args(&mut self, op: &'static Op, given: &Fields) -> Result<Vec<Arg>> {
        let params = op.sig.params();
        if let Some(name) = given.0.keys().find(|k| params.iter().all(|p| p.name(&op.sig) != k.as_ref())) {
            return Err(bad(format!("{} has no argument '{name}'", op.name())));
        }
        let mut args = Vec::new();
        for p in params {
            let name = p.name(&op.sig);
            let arg = match given.find(name) {
                Some(value) => self.arg(op, p, value),
                None => p.default_value(&op.sig).map(Arg::Value),
            };
            args.push(
                arg.ok_or_else(|| bad(format!("{}: the argument '{name}' is missing or of another kind", op.name())))?,
            );
        }
        Ok(args)
    }
    /// An argument; `None` where it is not of the parameter's kind.
    fn arg(&self, op: &'static Op, p: &Param, value: &Json) -> Option<Arg> {
        let field = |key: &str| value.as_map().filter(|m| m.len() == 1)?.get(key);
        if p.kind.holds_tensors() {
            if let Some(n) = field("tensor") {
                return matches!(p.kind, Kind::Tensor | Kind::Operand).then(|| self.known(n).ok().map(Arg::Tensor))?;
            }
            if let Some(items) = field("tensors") {
                let one = |v: &Json| match v {
                    Json::Null => (p.kind == Kind::OptTensors).then_some(None),
                    v => self.known(v).ok().map(Some),
                };
                let list = !matches!(p.kind, Kind::Tensor | Kind::Operand);
                return list.then(|| Some(Arg::Tensors(items.as_list()?.iter().map(one).collect::<Option<_>>()?)))?;
            }
        }
        self.value(op, p, value).map(Arg::Value)
    }
    fn value(&self, op: &'static Op, p: &Param, value: &Json) -> Option<Value<'static>> {
        if *value == Json::Null {
            return p.for_none().map(|v| if p.optional { Value::None } else { v });
        }
        let field = |key: &str| value.as_map().filter(|m| m.len() == 1)?.get(key);
        let text = |key: &str| field(key)?.as_str();
        Some(match p.kind {
            Kind::Tensor | Kind::Tensors | Kind::TensorArgs | Kind::OptTensors => return None,
            Kind::Operand | Kind::Scalar => Value::Scalar(scalar(value)?),
            Kind::Float => Value::Scalar(scalar(value).filter(|s| !matches!(s, Scalar::Complex(..)))?),
            Kind::Int => Value::Scalar(scalar(value).filter(|s| !matches!(s, Scalar::Complex(..) | Scalar::Float(_)))?),
            Kind::Bool => Value::Scalar(scalar(value).filter(|s| matches!(s, Scalar::Bool(_)))?),
            Kind::Is(b) => Value::Scalar(scalar(value).filter(|s| *s == Scalar::Bool(b))?),
            Kind::Ints | Kind::IntOrInts | Kind::Size => {
                Value::Ints(value.as_list()?.iter().map(Json::as_integer).collect::<Option<Ints>>()?)
            }
            Kind::Floats | Kind::FloatOrFloats => {
                Value::Scalars(field("numbers")?.as_list()?.iter().map(scalar).collect::<Option<_>>()?)
            }
            Kind::DType => Value::DType(dtype_of(text("dtype")?).ok()?),
            Kind::Device => Value::Device(self.device(text("device")?).ok()?),
            Kind::Format => Value::Format(Format::ALL.into_iter().find(|f| Some(f.name()) == text("format"))?),
            Kind::Str => Value::Str(value.as_str()?.to_string().into()),
            Kind::Choice => p.choose(&op.sig, value.as_str()?)?,
            Kind::Generator => Value::Generator(self.generators.get(field("generator")?.as_count()?)?.clone()),
        })
    }
}

fn has_grad(source: &Source) -> bool {
    matches!(source, Source::Outside(t) if t.grad().is_some())
}

fn scalar(value: &Json) -> Option<Scalar> {
    let float = |v: &Json| match v {
        Json::Number(n) => n.parse().ok(),
        Json::Text(t) if matches!(t.as_ref(), "NaN" | "inf" | "-inf") => t.parse().ok(),
        _ => None,
    };
    let whole = |n: &str| !n.contains(['.', 'e', 'E']);
    Some(match value {
        Json::Bool(b) => Scalar::Bool(*b),
        Json::Number(n) if whole(n) => Scalar::Int(n.parse().ok()?),
        Json::Number(n) => Scalar::Float(n.parse::<f64>().ok().filter(|f| f.is_finite())?),
        Json::Map(m) if m.len() == 1 => match m.iter().next()? {
            (key, v) if key == "unsigned" => Scalar::UInt(v.as_integer()?),
            (key, v) if key == "float" => Scalar::Float(float(v)?),
            (key, Json::List(parts)) if key == "complex" && parts.len() == 2 => {
                Scalar::Complex(float(&parts[0])?, float(&parts[1])?)
            }
            _ => return None,
        },
        _ => return None,
    })
}
