//! The rows for candle on the CPU.

use crate::Found;
use crate::data::{self, timed};
use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::optim::{AdamW, Optimizer, ParamsAdamW};

const DEVICE: Device = Device::Cpu;

fn rand(shape: &[usize]) -> Result<Tensor> {
    Tensor::rand(0f32, 1.0, shape, &DEVICE)
}

pub fn ops(found: &mut Found) -> Result<()> {
    let (a, b) = (rand(&[4])?, rand(&[4])?);
    let (big, other, square) = (rand(&[1_000_000])?, rand(&[1_000_000])?, rand(&[1000, 1000])?);
    found.row("a + b, 4 floats", timed(|| drop((&a + &b).unwrap())));
    found.row("a + b, 1M floats", timed(|| drop((&big + &other).unwrap())));
    found.row("tanh, 1M floats", timed(|| drop(big.tanh().unwrap())));
    found.row("sum, 1M floats", timed(|| drop(big.sum_all().unwrap())));
    found.row("softmax, 1000 x 1000", timed(|| drop(candle_nn::ops::softmax_last_dim(&square).unwrap())));
    found.row("transpose and copy, 1000 x 1000", timed(|| drop(square.t().unwrap().contiguous().unwrap())));
    for n in [128, 1024] {
        let (left, right) = (rand(&[n, n])?, rand(&[n, n])?);
        found.row(&format!("matmul, {n} x {n}"), timed(|| drop(left.matmul(&right).unwrap())));
    }
    Ok(())
}

fn linear(x: &Tensor, p: &[Var]) -> Result<Tensor> {
    x.matmul(&p[0].t()?)?.broadcast_add(&p[1])
}

fn convolution(x: &Tensor, p: &[Var], padding: usize) -> Result<Tensor> {
    let bias = p[1].reshape((1, (), 1, 1))?;
    x.conv2d(&p[0], padding, 1, 1, 1)?.broadcast_add(&bias)?.relu()?.max_pool2d(2)
}

fn forward(lenet: bool, x: &Tensor, p: &[Var]) -> Result<Tensor> {
    if !lenet {
        return linear(&linear(x, &p[..2])?.relu()?, &p[2..]);
    }
    let y = convolution(&convolution(x, &p[..2], 2)?, &p[2..4], 0)?.flatten_from(1)?;
    linear(&linear(&linear(&y, &p[4..6])?.relu()?, &p[6..8])?.relu()?, &p[8..])
}

pub fn model(found: &mut Found, lenet: bool) -> Result<()> {
    let (name, shapes, shape): (_, _, &[usize]) = match lenet {
        true => ("LeNet", data::LENET, &[data::BATCH, 1, 28, 28]),
        false => ("MLP", data::MLP, &[data::BATCH, 64]),
    };
    let made = data::parameters(shapes).into_iter().zip(shapes);
    let p: Vec<Var> = made.map(|(v, s)| Var::from_tensor(&Tensor::from_vec(v, *s, &DEVICE)?)).collect::<Result<_>>()?;
    let x = Tensor::from_vec(data::numbers(shape, 0, 1.0), shape, &DEVICE)?;
    let y = Tensor::from_vec(data::labels(), data::BATCH, &DEVICE)?.to_dtype(DType::U32)?;
    let options = ParamsAdamW { lr: 1e-3, weight_decay: 0.0, ..Default::default() };
    let mut optimizer = AdamW::new(p.clone(), options)?;
    let mut step = || -> Result<f32> {
        let logits = forward(lenet, &x, &p)?;
        let loss = candle_nn::ops::log_softmax(&logits, D::Minus1).and_then(|l| candle_nn::loss::nll(&l, &y))?;
        optimizer.backward_step(&loss)?;
        loss.to_scalar()
    };
    let mut last = 0.0;
    for _ in 0..data::STEPS {
        last = step()?;
    }
    found.loss(name, last as f64);
    found.row(&format!("{name}, a training step"), timed(|| assert!(step().unwrap().is_finite())));
    Ok(())
}
