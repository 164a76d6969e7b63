//! Runs a plan that `rustgrad.compiler.save` wrote: a program without Python.
//!
//!     cargo run --release --example run_plan -- model.rgx                    # what it expects
//!     cargo run --release --example run_plan -- model.rgx input.npy          # a NumPy file for each input
//!     cargo run --release --example run_plan -- model.rgx 0.5 1 -2           # or the numbers of its one input
//!     cargo run --release --example run_plan -- model.rgx input.npy --gpu

use rustgrad::compile::{self, Input, Program};
use rustgrad::device::Device;
use rustgrad::dtype::{DType, Element, Scalar};
use rustgrad::error::{Error, Result};
use rustgrad::tensor::Tensor;
use rustgrad::tensor::print::{PrintInput, format};
use rustgrad::with_dtype;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let gpu = args.iter().position(|a| a == "--gpu").map(|i| args.remove(i)).is_some();
    let Some((path, given)) = args.split_first() else {
        eprintln!("usage: run_plan PLAN [FILE.npy ... | NUMBER ...] [--gpu]");
        return ExitCode::from(2);
    };
    match run(path, given, gpu) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &str, given: &[String], gpu: bool) -> Result<()> {
    let program = if gpu { compile::load_on(path, Device::Gpu(0))? } else { compile::load(path)? };
    if given.is_empty() && !program.inputs().is_empty() {
        for Input { name, dtype, layout, device, .. } in program.inputs() {
            println!("{name}: {dtype} {:?} on {device}", layout.shape.as_slice());
        }
        return Ok(());
    }
    let inputs = inputs(&program, given)?;
    for t in program.run(&inputs)? {
        println!("{}", shown(&t)?);
    }
    Ok(())
}

/// A tensor for each input, from files or from numbers.
pub fn inputs(program: &Program, given: &[String]) -> Result<Vec<Tensor>> {
    let wanted = program.inputs();
    if let ([input], Ok(numbers)) =
        (wanted, given.iter().map(|g| g.parse()).collect::<std::result::Result<Vec<f64>, _>>())
    {
        return Ok(vec![tensor(numbers.into_iter().map(Scalar::Float), input.layout.shape.as_slice(), input)?]);
    }
    if given.len() != wanted.len() {
        return Err(Error::value(format!("expected {} files, got {}", wanted.len(), given.len())));
    }
    let one = |(path, input): (&String, &Input)| {
        let bytes = std::fs::read(path).map_err(|e| Error::runtime(format!("{path}: {e}")))?;
        let (shape, dtype, data) =
            npy(&bytes).ok_or_else(|| Error::value(format!("{path}: no row-major .npy file")))?;
        let elements = data.chunks_exact(dtype.size()).map(|chunk| element(dtype, chunk));
        tensor(elements, &shape, input)
    };
    given.iter().zip(wanted).map(one).collect()
}

/// A tensor of an input's dtype, strides and device.
fn tensor(elements: impl ExactSizeIterator<Item = Scalar>, shape: &[usize], input: &Input) -> Result<Tensor> {
    let dense = with_dtype!(input.dtype, T => {
        let elements: Vec<T> = elements.map(T::from_scalar).collect();
        if elements.len() != shape.iter().product::<usize>() {
            return Err(Error::value(format!("{}: got {} numbers; expected shape {shape:?}", input.name, elements.len())));
        }
        Tensor::from_slice(&elements, shape)?
    });
    if shape != input.layout.shape.as_slice() {
        let expected = input.layout.shape.as_slice();
        return Err(Error::value(format!("{}: the shape is {shape:?}; expected {expected:?}", input.name)));
    }
    let placed = Tensor::of_layout(input.layout.clone(), input.dtype, input.device)?;
    placed.copy_raw(&dense)?;
    Ok(placed)
}

/// Shape, dtype and bytes of a `.npy` file of version 1 to 3 in row-major order.
/// The format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.
pub fn npy(file: &[u8]) -> Option<(Vec<usize>, DType, &[u8])> {
    let rest = file.strip_prefix(b"\x93NUMPY")?;
    let (length, start): (usize, usize) = match rest.first()? {
        1 => (usize::from(u16::from_le_bytes(rest.get(2..4)?.try_into().ok()?)), 4),
        _ => (u32::from_le_bytes(rest.get(2..6)?.try_into().ok()?) as usize, 6),
    };
    let header = std::str::from_utf8(rest.get(start..start.checked_add(length)?)?).ok()?;
    let value = |key: &str| header.split_once(&format!("'{key}':")).map(|(_, v)| v.trim_start());
    let kind = value("descr")?.strip_prefix('\'')?.split('\'').next()?;
    let dtype = match kind.trim_start_matches(['<', '|', '=']) {
        "f8" => DType::F64,
        "f4" => DType::F32,
        "f2" => DType::F16,
        "i8" => DType::I64,
        "i4" => DType::I32,
        "i2" => DType::I16,
        "i1" => DType::I8,
        "u1" => DType::U8,
        "b1" => DType::Bool,
        _ => return None,
    };
    let shape = value("shape")?.strip_prefix('(')?.split(')').next()?;
    let shape = shape.split(',').map(str::trim).filter(|s| !s.is_empty()).map(|s| s.parse().ok());
    let shape = shape.collect::<Option<Vec<usize>>>()?;
    let data = &rest[start + length..];
    let bytes = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d))?;
    (value("fortran_order")?.starts_with("False") && data.len() == bytes).then_some((shape, dtype, data))
}

fn element(dtype: DType, bytes: &[u8]) -> Scalar {
    if dtype == DType::Bool {
        return Scalar::Bool(bytes[0] != 0);
    }
    // SAFETY: the slice has the bytes of one element, and every pattern of them is a number of the dtype.
    with_dtype!(dtype, T => unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }.to_scalar())
}

/// A tensor as Python prints it.
pub fn shown(t: &Tensor) -> Result<String> {
    let dense = t.dense_copy(t.dtype())?;
    let layout = dense.layout();
    let get = |index: &[usize]| {
        let position = layout.offset + index.iter().zip(&layout.strides).map(|(i, s)| i * s).sum::<usize>();
        dense.element(position).unwrap_or(Scalar::Float(f64::NAN))
    };
    let (shape, dtype, device) = (t.shape(), t.dtype(), t.device());
    let input = PrintInput { prefix: "tensor(", shape, dtype, get: &get, device, requires_grad: false, grad_fn: None };
    Ok(format(&input))
}
