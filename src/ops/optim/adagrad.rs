//! Adagrad (Duchi, Hazan, Singer, JMLR 12, 2011).

use super::pass::{Numbers, Update, run, writes_lists};
use super::{STEP, decayed, sign, steps};
use crate::cpu::arith::Float;
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_ADAGRAD_];

pub static FUSED_ADAGRAD_: Op = Op {
    sig: sig(
        "_fused_adagrad_(Tensor![] self, Tensor[] grads, Tensor![] state_sums, Tensor[] state_steps, *, float lr, float lr_decay, float weight_decay, float eps, bool maximize) -> ()",
    ),
    doc: "One step of Adagrad: writes to the parameters `self` and to `state_sums`. `state_steps` count from 1.",
    body: writes_lists(|c, _| {
        let [lr, lr_decay, decay, eps] =
            [c.float("lr")?, c.float("lr_decay")?, c.float("weight_decay")?, c.float("eps")?];
        let (steps, sign) = (steps(c)?, sign(c.flag("maximize")));
        let update = |i: usize| Ok(Adagrad { rate: lr / (1.0 + (steps[i] - 1.0) * lr_decay), decay, eps, sign });
        run(c, [0, 1, 2], update)
    }),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](pos, nograd), f32[4](pos, nograd)], [f32[](=3, nograd), f32[](=1, nograd)], lr=0.1, lr_decay=0.2, weight_decay=0.1, eps=1e-10, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](pos, nograd)], [f32[](=3, nograd)], lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-10, maximize=True",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [], lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-10, maximize=False",
        "RuntimeError",
        "expected one step count per parameter",
    )],
    ..STEP
};

#[derive(Clone, Copy)]
struct Adagrad {
    rate: f64,
    decay: f64,
    eps: f64,
    sign: f64,
}

impl Update<3> for Adagrad {
    const NAME: &'static str = "adagrad";
    const TENSORS: [&'static str; 3] = ["x", "g", "s"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    s += g * g;
    x += {{rate}} * g / (sqrt_(s) + {{eps}});";
    fn rule<T: Float>(self) -> impl Fn([T; 3]) -> [T; 3] {
        let n = T::from_f64;
        let (rate, decay, eps, sign) = (n(-self.rate), n(self.decay), n(self.eps), n(self.sign));
        let decays = self.decay != 0.0;
        move |[p, g, sum]| {
            let d = decayed(g.times(sign), p, decay, decays);
            let sum = sum.plus(d.times(d));
            [p.plus(rate.times(d).divide(sum.sqrt().plus(eps))), g, sum]
        }
    }
    fn numbers(self) -> Numbers {
        smallvec![("rate", -self.rate), ("decay", self.decay), ("eps", self.eps), ("sign", self.sign)]
    }
}
