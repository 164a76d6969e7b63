//! A recorded call as text: the steps by the names of ops and arguments, and the tensors from outside as bytes.

use super::container;
use super::json::{list, quote};
use crate::compile::recorded::Recorded;
use crate::compile::step::{Arg, Source, Step};
use crate::device::Device;
use crate::dtype::{DType, Scalar, default_dtype};
use crate::layout::Layout;
use crate::op::generator::{Generator, default_generator};
use crate::op::tracer::Form;
use crate::op::{Op, Value};
use crate::tensor::{Meta, Tensor};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

/// What a call is to those who call it: the tensors of its arguments with their names, and names of other tensors.
pub struct Naming<'a> {
    pub inputs: &'a [Tensor],
    pub input_names: &'a [String],
    /// By the identity of the tensor.
    pub names: &'a HashMap<usize, String>,
}

/// The text of a plan and the memory that its tensors from outside show.
pub struct Encoded {
    pub graph: String,
    pub memories: Vec<(String, Tensor)>,
}

/// A tensor that the file holds.
struct Held {
    tensor: Tensor,
    name: String,
    memory: usize,
    /// The position in `held` of its gradient, which a step reads.
    grad: Option<usize>,
}

/// The text of a recorded call, or why it cannot be written.
pub fn encode(recorded: &Recorded, naming: &Naming) -> Result<Encoded, String> {
    let mut e = Encoder { naming, held: Vec::new(), memories: Vec::new(), generators: Vec::new() };
    let mut used: HashSet<usize> = recorded.results.iter().copied().collect();
    for step in &recorded.steps {
        step.reads(|n| {
            used.insert(n);
        });
    }
    let of_grads = recorded.sources.iter().enumerate().filter(|(n, _)| used.contains(n));
    let of_grads: Vec<usize> =
        of_grads.filter_map(|(_, s)| if let Source::GradOf(of) = s { Some(*of) } else { None }).collect();
    used.extend(&of_grads);
    let mut sources = String::new();
    let mut failed = None;
    list(&mut sources, recorded.sources.iter().enumerate(), |out, (n, source)| {
        let text = e.source(source, used.contains(&n), of_grads.contains(&n));
        out.push_str(&text.unwrap_or_else(|problem| failed.get_or_insert(problem).clone()));
    });
    let mut steps = String::new();
    list(&mut steps, &recorded.steps, |out, step| {
        if let Err(problem) = e.step(out, step) {
            failed.get_or_insert(problem);
        }
    });
    if let Some(problem) = failed {
        return Err(problem);
    }
    let mut graph = format!("{{\"dtype\":\"{}\",\"device\":\"{}\",\"inputs\":", default_dtype(), Device::default());
    e.inputs(&mut graph)?;
    let memories = e.memories()?;
    graph.push_str(",\"tensors\":");
    e.tensors(&mut graph, &memories);
    let _ = write!(graph, ",\"generators\":");
    list(&mut graph, &e.generators, |out, g| {
        let state: String = g.state().to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = write!(out, "{{\"state\":\"{state}\",\"device\":\"{}\"}}", g.device);
    });
    let _ = write!(graph, ",\"sources\":{sources},\"steps\":{steps},\"results\":");
    list(&mut graph, &recorded.results, number);
    graph.push('}');
    Ok(Encoded { graph, memories })
}

fn number(out: &mut String, n: impl std::fmt::Display) {
    let _ = write!(out, "{n}");
}

struct Encoder<'a> {
    naming: &'a Naming<'a>,
    held: Vec<Held>,
    /// Identities of storages.
    memories: Vec<usize>,
    generators: Vec<Arc<Generator>>,
}

impl Encoder<'_> {
    fn source(&mut self, source: &Source, used: bool, with_grad: bool) -> Result<String, String> {
        Ok(match source {
            Source::Input(i) => {
                if with_grad {
                    return Err("it reads the gradient of an argument".into());
                }
                format!("{{\"input\":{i}}}")
            }
            Source::Outside(t) if used => {
                let at = self.hold(t)?;
                if with_grad {
                    let grad = t.grad().ok_or("it reads a gradient that is gone after the call")?;
                    self.held[at].grad = Some(self.hold(&grad)?);
                }
                format!("{{\"tensor\":{at}}}")
            }
            Source::GradOf(of) if used => format!("{{\"grad_of\":{of}}}"),
            _ => "null".into(),
        })
    }
    fn hold(&mut self, t: &Tensor) -> Result<usize, String> {
        if let Some(at) = self.held.iter().position(|h| h.tensor.same(t)) {
            return Ok(at);
        }
        let id = t.storage().id();
        if t.device() == Device::Meta {
            return Err("it uses a tensor on the meta device".into());
        }
        if self.naming.inputs.iter().any(|i| i.storage().id() == id) {
            return Err("an argument shares memory with a tensor from outside".into());
        }
        let memory = self.memories.iter().position(|m| *m == id).unwrap_or_else(|| {
            self.memories.push(id);
            self.memories.len() - 1
        });
        let name = self.naming.names.get(&t.id()).cloned().unwrap_or_else(|| format!("tensor.{}", self.held.len()));
        let mut unique = name.clone();
        while unique == "__metadata__" || self.held.iter().any(|h| h.name == unique) {
            unique.push('_');
        }
        self.held.push(Held { tensor: t.clone(), name: unique, memory, grad: None });
        Ok(self.held.len() - 1)
    }

    /// The storages as tensors: one that a single tensor fills is named and shaped as that tensor.
    fn memories(&self) -> Result<Vec<(String, Tensor)>, String> {
        let one = |i: usize| {
            let mut on = self.held.iter().filter(|h| h.memory == i);
            let first = on.next().ok_or("a memory without tensors")?;
            let (t, bytes) = (&first.tensor, first.tensor.storage().bytes());
            let same = on.all(|h| h.tensor.dtype() == t.dtype());
            // What the format has no name for, and what is seen in several ways, are bytes.
            let dtype = if same && container::has(t.dtype()) { t.dtype() } else { DType::U8 };
            let n = bytes / dtype.size();
            let fills = dtype == t.dtype() && t.is_contiguous() && t.numel() == n;
            let flat = Meta { storage: t.storage().clone(), layout: Layout::contiguous(&[n]), dtype };
            let whole = Tensor::from_meta(flat).dense_copy(dtype).map_err(|e| e.to_string())?;
            let shape: &[usize] = if fills { t.shape() } else { &[n] };
            Ok((first.name.clone(), whole.with_layout(Layout::contiguous(shape))))
        };
        (0..self.memories.len()).map(one).collect()
    }
    fn tensors(&self, out: &mut String, memories: &[(String, Tensor)]) {
        list(out, &self.held, |out, h| {
            let t = &h.tensor;
            out.push_str("{\"name\":");
            quote(out, &h.name);
            out.push_str(",\"memory\":");
            quote(out, &memories[h.memory].0);
            looks(out, t.layout(), t.dtype());
            let _ = write!(out, ",\"offset\":{},\"device\":\"{}\"", t.layout().offset, t.device());
            if let Some(g) = h.grad {
                let _ = write!(out, ",\"grad\":{g}");
            }
            out.push('}');
        });
    }
    fn inputs(&self, out: &mut String) -> Result<(), String> {
        let Naming { inputs, input_names, .. } = self.naming;
        list(out, inputs.iter().enumerate(), |out, (i, t)| {
            out.push_str("{\"name\":");
            quote(out, input_names.get(i).map_or("", |n| n));
            looks(out, t.layout(), t.dtype());
            let _ = write!(out, ",\"device\":\"{}\"", t.device());
            if let Some(same) = inputs[..i].iter().position(|o| o.same(t)) {
                let _ = write!(out, ",\"same\":{same}");
            } else if let Some(near) = inputs[..i].iter().position(|o| o.storage().id() == t.storage().id()) {
                let distance = t.first_byte() - inputs[near].first_byte();
                let _ = write!(out, ",\"shares\":{near},\"distance\":{distance}");
            }
            out.push('}');
        });
        match inputs.iter().any(|t| t.device() == Device::Meta) {
            true => Err("an argument is on the meta device".into()),
            false => Ok(()),
        }
    }

    fn step(&mut self, out: &mut String, step: &Step) -> Result<(), String> {
        match step {
            Step::Call { op, form, args, outs, results, draws, .. } => {
                let form_name = match form {
                    Form::Functional => "",
                    Form::InPlace => ",\"form\":\"in_place\"",
                    Form::Out => ",\"form\":\"out\",\"out\":",
                };
                let _ = write!(out, "{{\"op\":\"{}\"{form_name}", op.name());
                if *form == Form::Out {
                    list(out, outs, number);
                }
                if *draws {
                    out.push_str(",\"draws\":true");
                }
                out.push_str(",\"args\":{");
                for (i, (p, arg)) in op.sig.params().iter().zip(args).enumerate() {
                    let _ = write!(out, "{}\"{}\":", if i > 0 { "," } else { "" }, p.name(&op.sig));
                    self.arg(out, op, arg)?;
                }
                out.push_str("},\"results\":");
                list(out, results, number);
                out.push('}');
            }
            Step::Alias { of, layout, shift, dtype, counted, result } => {
                let _ = write!(out, "{{\"alias\":{of},\"shift\":{shift},\"counted\":{counted}");
                looks(out, layout, *dtype);
                let _ = write!(out, ",\"result\":{result}}}");
            }
            Step::SetGrad { leaf, grad } => {
                let grad = grad.map_or("null".into(), |n| n.to_string());
                let _ = write!(out, "{{\"set_grad\":{leaf},\"to\":{grad}}}");
            }
            Step::Read { .. } => return Err("it reads the values of a tensor".into()),
        }
        Ok(())
    }
    fn arg(&mut self, out: &mut String, op: &Op, arg: &Arg) -> Result<(), String> {
        match arg {
            Arg::Tensor(n) => drop(write!(out, "{{\"tensor\":{n}}}")),
            Arg::Tensors(items) => {
                out.push_str("{\"tensors\":");
                list(out, items, |out, n| match n {
                    Some(n) => number(out, n),
                    None => out.push_str("null"),
                });
                out.push('}');
            }
            Arg::Value(value) => return self.value(out, op, value),
            Arg::Number(..) => return Err("a number of it differs from call to call".into()),
        }
        Ok(())
    }
    fn value(&mut self, out: &mut String, op: &Op, value: &Value) -> Result<(), String> {
        let _ = match value {
            Value::None => write!(out, "null"),
            Value::Scalar(s) => {
                scalar(out, *s);
                Ok(())
            }
            Value::Ints(v) => {
                list(out, v.iter(), number);
                Ok(())
            }
            Value::Scalars(v) => {
                out.push_str("{\"numbers\":");
                list(out, v, |out, s| scalar(out, *s));
                write!(out, "}}")
            }
            Value::DType(d) => write!(out, "{{\"dtype\":\"{d}\"}}"),
            Value::Device(d) => write!(out, "{{\"device\":\"{d}\"}}"),
            Value::Format(f) => write!(out, "{{\"format\":\"{}\"}}", f.name()),
            Value::Str(s) => {
                quote(out, s);
                Ok(())
            }
            Value::Choice(c) => {
                quote(out, c.name);
                Ok(())
            }
            Value::Generator(g) if Arc::ptr_eq(g, default_generator(g.device)) => write!(out, "null"),
            Value::Generator(g) => {
                let at = self.generators.iter().position(|o| Arc::ptr_eq(o, g)).unwrap_or_else(|| {
                    self.generators.push(g.clone());
                    self.generators.len() - 1
                });
                write!(out, "{{\"generator\":{at}}}")
            }
            Value::Tensor(_) | Value::Owned(_) | Value::Tensors(_) => {
                return Err(format!("a tensor without a number among the arguments of {}", op.name()));
            }
        };
        Ok(())
    }
}

/// Fields of a dtype and a layout without its offset.
fn looks(out: &mut String, layout: &Layout, dtype: DType) {
    let _ = write!(out, ",\"dtype\":\"{dtype}\",\"shape\":");
    list(out, layout.shape.iter(), number);
    out.push_str(",\"strides\":");
    list(out, layout.strides.iter(), number);
}

/// A number whose kind and bits come back; a NaN comes back as some NaN.
fn scalar(out: &mut String, s: Scalar) {
    let float = |out: &mut String, f: f64| {
        let _ = if f.is_finite() { write!(out, "{f:?}") } else { write!(out, "\"{f}\"") };
    };
    match s {
        Scalar::Bool(b) => drop(write!(out, "{b}")),
        Scalar::Int(i) => number(out, i),
        Scalar::UInt(u) => drop(write!(out, "{{\"unsigned\":{u}}}")),
        Scalar::Float(f) if f.is_finite() => float(out, f),
        Scalar::Float(f) => {
            out.push_str("{\"float\":");
            float(out, f);
            out.push('}');
        }
        Scalar::Complex(re, im) => {
            out.push_str("{\"complex\":[");
            float(out, re);
            out.push(',');
            float(out, im);
            out.push_str("]}");
        }
    }
}
