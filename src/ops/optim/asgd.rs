//! Averaged stochastic gradient descent (Polyak and Juditsky, SIAM J. Control Optim. 30, 1992).

use super::pass::{Numbers, Update, run, writes_lists};
use super::{STEP, decayed, numbers, sign, steps};
use crate::cpu::arith::Float;
use crate::dtype::Scalar;
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_ASGD_];

pub static FUSED_ASGD_: Op = Op {
    sig: sig(
        "_fused_asgd_(Tensor![] self, Tensor[] grads, Tensor![] axs, Tensor![] mus, Tensor![] etas, Tensor[] state_steps, *, float lr, float lambd, float alpha, float t0, float weight_decay, bool maximize) -> ()",
    ),
    doc: "One step of averaged gradient descent: writes to the parameters `self`, their averages `axs`, and for the next step `mus`, the shares of a new value in the average, and `etas`, the rates. `state_steps` count from 1.",
    body: writes_lists(|c, _| {
        let [lr, lambd, alpha, t0, decay] =
            [c.float("lr")?, c.float("lambd")?, c.float("alpha")?, c.float("t0")?, c.float("weight_decay")?];
        let (sign, steps) = (sign(c.flag("maximize")), steps(c)?);
        let (shares, rates) = (numbers(c, "mus", "share")?, numbers(c, "etas", "rate")?);
        let update =
            |i: usize| Ok(Asgd { rate: rates[i], shrink: 1.0 - lambd * rates[i], share: shares[i], decay, sign });
        run(c, [0, 1, 2], update)?;
        for ((share, rate), step) in c.argument("mus").tensors().zip(c.argument("etas").tensors()).zip(steps) {
            rate.fill_raw(Scalar::Float(lr / (1.0 + lambd * lr * step).powf(alpha)))?;
            share.fill_raw(Scalar::Float(1.0 / (step - t0).max(1.0)))?;
        }
        Ok(())
    }),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[](=0.5, nograd), f32[](=1, nograd)], [f32[](=0.25, nograd), f32[](=0.5, nograd)], [f32[](=4, nograd), f32[](=1, nograd)], lr=0.1, lambd=0.1, alpha=0.75, t0=2.0, weight_decay=0.1, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](nograd)], [f32[](=0.5, nograd)], [f32[](=0.25, nograd)], [f32[](=4, nograd)], lr=0.1, lambd=0.1, alpha=0.75, t0=8.0, weight_decay=0.0, maximize=True",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [f32[](=1, nograd)], [], [f32[](=1, nograd)], lr=0.1, lambd=0.1, alpha=0.75, t0=1.0, weight_decay=0.0, maximize=False",
        "RuntimeError",
        "expected one rate per parameter",
    )],
    ..STEP
};

#[derive(Clone, Copy)]
struct Asgd {
    rate: f64,
    /// `1 - lambd * rate`.
    shrink: f64,
    share: f64,
    decay: f64,
    sign: f64,
}

impl Update<3> for Asgd {
    const NAME: &'static str = "asgd";
    const TENSORS: [&'static str; 3] = ["x", "g", "a"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    x = x * {{shrink}} + {{rate}} * g;
    if ({{share}} == 1.0) { a = x; } else { a += (x - a) * {{share}}; }";
    fn rule<T: Float>(self) -> impl Fn([T; 3]) -> [T; 3] {
        let n = T::from_f64;
        let (rate, shrink, share, copies) = (n(-self.rate), n(self.shrink), n(self.share), self.share == 1.0);
        let (sign, decay, decays) = (n(self.sign), n(self.decay), self.decay != 0.0);
        move |[p, g, average]| {
            let d = decayed(g.times(sign), p, decay, decays);
            let p = p.times(shrink).plus(rate.times(d));
            [p, g, if copies { p } else { average.plus(p.minus(average).times(share)) }]
        }
    }
    fn numbers(self) -> Numbers {
        smallvec![
            ("rate", -self.rate),
            ("shrink", self.shrink),
            ("share", self.share),
            ("decay", self.decay),
            ("sign", self.sign),
        ]
    }
}
