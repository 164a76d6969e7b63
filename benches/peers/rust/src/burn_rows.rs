//! The rows for burn on the CPU, by its backend Flex.

use crate::Found;
use crate::data::{self, timed};
use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::{relu, softmax};
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};

fn rand<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Uniform(0.0, 1.0), device)
}

pub fn ops(found: &mut Found) {
    let device = Device::flex();
    let (a, b) = (rand([4], &device), rand([4], &device));
    let (big, other, square) = (rand([1_000_000], &device), rand([1_000_000], &device), rand([1000, 1000], &device));
    found.row("a + b, 4 floats", timed(|| drop(a.clone() + b.clone())));
    found.row("a + b, 1M floats", timed(|| drop(big.clone() + other.clone())));
    found.row("tanh, 1M floats", timed(|| drop(big.clone().tanh())));
    found.row("sum, 1M floats", timed(|| drop(big.clone().sum())));
    found.row("softmax, 1000 x 1000", timed(|| drop(softmax(square.clone(), 1))));
    for n in [128, 1024] {
        let (left, right) = (rand([n, n], &device), rand([n, n], &device));
        found.row(&format!("matmul, {n} x {n}"), timed(|| drop(left.clone().matmul(right.clone()))));
    }
}

fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// A layer of two of the parameters; burn keeps weights transposed.
fn linear(p: &mut std::vec::IntoIter<Vec<f32>>, [inputs, outputs]: [usize; 2], device: &Device) -> Linear {
    let mut layer = LinearConfig::new(inputs, outputs).init(device);
    let (weight, bias) = (p.next().expect("a weight"), p.next().expect("a bias"));
    layer.weight = Param::from_tensor(tensor(weight, [outputs, inputs], device).transpose());
    layer.bias = Some(Param::from_tensor(tensor(bias, [outputs], device)));
    layer
}

fn convolution(p: &mut std::vec::IntoIter<Vec<f32>>, channels: [usize; 2], padding: usize, device: &Device) -> Conv2d {
    let config = Conv2dConfig::new(channels, [5, 5]);
    let mut layer = config.with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding)).init(device);
    let (weight, bias) = (p.next().expect("a weight"), p.next().expect("a bias"));
    layer.weight = Param::from_tensor(tensor(weight, [channels[1], channels[0], 5, 5], device));
    layer.bias = Some(Param::from_tensor(tensor(bias, [channels[1]], device)));
    layer
}

#[derive(Module, Debug)]
struct Net {
    convolutions: Vec<Conv2d>,
    pool: MaxPool2d,
    layers: Vec<Linear>,
}

impl Net {
    fn new(lenet: bool, device: &Device) -> Net {
        let mut p = data::parameters(if lenet { data::LENET } else { data::MLP }).into_iter();
        let convolutions = match lenet {
            true => vec![convolution(&mut p, [1, 6], 2, device), convolution(&mut p, [6, 16], 0, device)],
            false => Vec::new(),
        };
        let sizes: &[[usize; 2]] = if lenet { &[[400, 120], [120, 84], [84, 10]] } else { &[[64, 32], [32, 10]] };
        let layers = sizes.iter().map(|&size| linear(&mut p, size, device)).collect();
        Net { convolutions, pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(), layers }
    }
    fn classify(&self, mut x: Tensor<2>) -> Tensor<2> {
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x);
            if i + 1 < self.layers.len() {
                x = relu(x);
            }
        }
        x
    }
    fn convolve(&self, x: Tensor<4>) -> Tensor<2> {
        self.convolutions.iter().fold(x, |x, c| self.pool.forward(relu(c.forward(x)))).flatten(1, 3)
    }
}

pub fn model(found: &mut Found, lenet: bool) {
    let name = if lenet { "LeNet" } else { "MLP" };
    let device = Device::flex().autodiff();
    let mut net = Some(Net::new(lenet, &device));
    let images = tensor(data::numbers(&[data::BATCH, 1, 28, 28], 0, 1.0), [data::BATCH, 1, 28, 28], &device);
    let rows = tensor(data::numbers(&[data::BATCH, 64], 0, 1.0), [data::BATCH, 64], &device);
    let y: Tensor<1, Int> = Tensor::from_data(TensorData::new(data::labels(), [data::BATCH]), &device);
    let mut optimizer = AdamConfig::new().with_epsilon(1e-8).init();
    let entropy = CrossEntropyLossConfig::new().init(&device);
    let mut step = || {
        let before = net.take().expect("a network");
        let logits = before.classify(if lenet { before.convolve(images.clone()) } else { rows.clone() });
        let loss = entropy.forward(logits, y.clone());
        let grads = GradientsParams::from_grads(loss.backward(), &before);
        net = Some(optimizer.step(1e-3, before, grads));
        loss.into_scalar::<f32>()
    };
    let mut last = 0.0;
    for _ in 0..data::STEPS {
        last = step();
    }
    found.loss(name, f64::from(last));
    found.row(&format!("{name}, a training step"), timed(|| assert!(step().is_finite())));
}
