//! Several elementwise rules as one kernel: what lies between them stays in registers.
//!
//! A program is made once, for operands of known dtypes and strides. Each rule is a function of the shader; its result is
//! rounded to its dtype, as it would be on its way through memory. All compute in one type, and what is stored is as wide
//! as a word, so that invocations share none.

use super::element::lanes;
use super::kernel::Kernel;
use super::template::Compute;
use super::view::View;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::kinds::RuleInput;
use crate::layout::{Dims, Layout};
use smallvec::SmallVec;
use std::fmt::Write;

const TEMPLATE: &str = include_str!("../../../shaders/program.wgsl");
/// Names of operands, as many as a shader may bind beside the parameters, and of numbers.
const OPERANDS: [&str; 7] = ["a", "b", "c", "d", "f", "h", "k"];
const NUMBERS: [&str; 16] =
    ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12", "n13", "n14", "n15"];
const ARGUMENTS: [&str; 4] = ["x", "y", "z", "w"];
/// Words of the parameter block.
const WORDS: usize = 256;

/// A rule of a program: its WGSL computes in `compute`, and its result has `dtype`.
pub struct ProgramRule {
    pub wgsl: &'static str,
    pub compute: DType,
    pub inputs: SmallVec<[RuleInput; 4]>,
    pub dtype: DType,
}

/// An operand in memory, by the dtype and layout that it will have in each run.
struct Place {
    dtype: DType,
    shape: Dims,
    strides: Dims,
    /// Over the shape of the program.
    spread: Dims,
    stored: bool,
}

pub struct Program {
    shape: Dims,
    compute: Compute,
    places: Vec<Place>,
    numbers: Vec<Scalar>,
    rules: String,
    body: String,
}

/// The type in which a shader computes a dtype; rules of one program agree in it.
pub fn computes_as(dtype: DType) -> Option<u8> {
    kind(dtype).map(|c| c as u8)
}

fn kind(dtype: DType) -> Option<Compute> {
    if dtype == DType::Bool { Some(Compute::Bool) } else { Compute::of(dtype) }
}

/// A result as it comes back from memory of its dtype; none where that needs another compute type.
fn rounded(compute: Compute, dtype: DType) -> Option<&'static str> {
    Some(match (compute, dtype) {
        (Compute::F32, DType::F32) | (Compute::F64, DType::F64) => "v",
        (Compute::I32, DType::I32) | (Compute::I64, DType::I64) => "v",
        (Compute::F32, DType::F16) => "f16_to_f32(f32_to_f16(v))",
        (Compute::F32, DType::BF16) => "bitcast<f32>(f32_to_bf16(v) << 16u)",
        (Compute::F32, DType::Bool) => "T(truth_f32(v))",
        (Compute::F64, DType::Bool) => "T(truth_f64(v))",
        (Compute::I32 | Compute::Bool, DType::Bool) => "T(truth_i32(v))",
        (Compute::I64, DType::Bool) => "T(truth_i64(v))",
        _ => return None,
    })
}

impl Program {
    /// For `rules` over `shape`, with `stores` of (rule, operand), on a device that `has` these dtypes. None where no single kernel does it: too many operands or
    /// numbers, a rule without WGSL, a narrow result, dtypes that the device has not.
    pub fn new(
        has: impl Fn(DType) -> bool,
        shape: &[usize],
        memory: &[(DType, &Layout)],
        rules: &[ProgramRule],
        stores: &[(usize, usize)],
    ) -> Option<Program> {
        let compute = kind(rules.first()?.compute)?;
        let mut program = Program {
            shape: shape.into(),
            compute,
            places: Vec::new(),
            numbers: Vec::new(),
            rules: String::new(),
            body: String::new(),
        };
        for (k, (dtype, layout)) in memory.iter().enumerate() {
            let stored = stores.iter().any(|s| s.1 == k);
            let fits = layout.shape.len() <= shape.len() && k < OPERANDS.len();
            if !fits || !has(*dtype) || stored && lanes(*dtype) > 1 || Compute::of(*dtype).is_none() {
                return None;
            }
            let spread = layout.broadcast_strides(shape);
            let (shape, strides) = (layout.shape.clone(), layout.strides.clone());
            program.places.push(Place { dtype: *dtype, shape, strides, spread, stored });
        }
        let words = 5 + memory.len() * (1 + 2 * shape.len()) + 2 * NUMBERS.len();
        if !rules.iter().all(|r| has(r.compute)) {
            return None;
        }
        rules.iter().enumerate().try_for_each(|(i, r)| program.rule(i, r))?;
        for &(rule, operand) in stores {
            let name = OPERANDS[operand];
            let _ = writeln!(program.body, "    write_{name}({{{{{name}}}}} + walk_{name}(e), r{rule});");
        }
        (words <= WORDS).then_some(program)
    }
    /// Adds a rule as a function and its call.
    fn rule(&mut self, i: usize, rule: &ProgramRule) -> Option<()> {
        let known = !rule.wgsl.is_empty() && kind(rule.compute)? == self.compute;
        if !known || rule.inputs.len() > ARGUMENTS.len() {
            return None;
        }
        let takes: Vec<String> = ARGUMENTS[..rule.inputs.len()].iter().map(|a| format!("{a}: T")).collect();
        let value = rounded(self.compute, rule.dtype)?;
        let _ = writeln!(
            self.rules,
            "fn rule_{i}({}) -> T {{\n    let v = T({});\n    return {value};\n}}",
            takes.join(", "),
            rule.wgsl
        );
        let mut inputs = Vec::new();
        for input in &rule.inputs {
            inputs.push(match *input {
                RuleInput::Rule(r) => format!("r{r}"),
                RuleInput::Operand(k) => {
                    let name = OPERANDS[k];
                    format!("read_{name}({{{{{name}}}}} + walk_{name}(e))")
                }
                RuleInput::Number(s) => {
                    self.numbers.push(s);
                    format!("{{{{{}}}}}", NUMBERS.get(self.numbers.len() - 1)?)
                }
            });
        }
        let _ = writeln!(self.body, "    let r{i} = rule_{i}({});", inputs.join(", "));
        Some(())
    }

    /// Runs over these operands, in one dispatch; false, with nothing done, where they are not those that it was made for,
    /// where one is too large for a binding, or where the buffer of one that is written is that of another.
    pub fn run(&self, operands: &[View]) -> Result<bool> {
        let same =
            |(v, p): (&View, &Place)| v.dtype == p.dtype && v.shape == &p.shape[..] && v.strides == &p.strides[..];
        let units: usize = self.shape.iter().product();
        let fit = operands.len() == self.places.len()
            && operands.iter().zip(&self.places).all(same)
            && operands.iter().all(View::fits)
            && units < 1 << 31;
        let shared = |k: usize| {
            let id = operands[k].buffer.id();
            operands.iter().enumerate().any(|(j, o)| j != k && o.buffer.id() == id)
        };
        if !fit || (0..operands.len()).any(|k| self.places[k].stored && shared(k)) {
            return Ok(false);
        }
        if units == 0 {
            return Ok(true);
        }
        let mut kernel = Kernel::new("program", TEMPLATE, self.compute);
        for ((view, place), name) in operands.iter().zip(&self.places).zip(OPERANDS) {
            kernel = if place.stored { kernel.write(name, *view) } else { kernel.read(name, *view) };
            kernel = kernel.walk(name, &self.shape, &place.spread);
        }
        for (s, name) in self.numbers.iter().zip(NUMBERS) {
            kernel = kernel.scalar(name, *s);
        }
        kernel = kernel.text("rules", self.rules.clone()).text("body", self.body.clone()).number("units", units)?;
        kernel.launch(units).map(|()| true)
    }
}
