//! RAdam: Adam with a rectified variance (arXiv:1908.03265).

use super::pass::{Numbers, Update, run, writes_lists};
use super::{Powers, STEP, decayed, sign, steps};
use crate::cpu::arith::Float;
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_RADAM_];

pub static FUSED_RADAM_: Op = Op {
    sig: sig(
        "_fused_radam_(Tensor![] self, Tensor[] grads, Tensor![] exp_avgs, Tensor![] exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool decoupled_weight_decay, bool maximize) -> ()",
    ),
    doc: "One step of RAdam: writes to the parameters `self`, `exp_avgs` and `exp_avg_sqs`. `state_steps` count from 1.",
    body: writes_lists(|c, _| {
        let [lr, beta1, beta2, decay, eps] =
            [c.float("lr")?, c.float("beta1")?, c.float("beta2")?, c.float("weight_decay")?, c.float("eps")?];
        let (decoupled, sign, steps) = (c.flag("decoupled_weight_decay"), sign(c.flag("maximize")), steps(c)?);
        let longest = 2.0 / (1.0 - beta2) - 1.0;
        let mut powers = Powers::of([beta1, beta2]);
        let update = |i: usize| {
            let [power1, power2] = powers.at(steps[i]);
            let correction = 1.0 - power2;
            // The length of the average as if it were a simple one; short ones have no bounded variance.
            let length = longest - 2.0 * steps[i] * power2 / correction;
            let variance = (length - 4.0) * (length - 2.0) * longest / ((longest - 4.0) * (longest - 2.0) * length);
            let rectified = (length > 5.0).then(|| (variance * correction).sqrt());
            Ok(Radam {
                shrink: if decoupled { 1.0 - lr * decay } else { 1.0 },
                decay: if decoupled { 0.0 } else { decay },
                sign,
                beta1,
                beta2,
                eps,
                size: lr / (1.0 - power1) * rectified.unwrap_or(1.0),
                adaptive: rectified.is_some(),
            })
        };
        run(c, [0, 1, 2, 3], update)
    }),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](pos, nograd), f32[4](pos, nograd)], [f32[](=9, nograd), f32[](=1, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-08, decoupled_weight_decay=False, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](pos, nograd)], [f32[](=9, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-08, decoupled_weight_decay=True, maximize=True",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-08, decoupled_weight_decay=False, maximize=False",
        "RuntimeError",
        "expected one step count per parameter",
    )],
    ..STEP
};

#[derive(Clone, Copy)]
struct Radam {
    shrink: f64,
    decay: f64,
    sign: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    size: f64,
    /// Whether the step is divided by the root of the average square.
    adaptive: bool,
}

impl Update<4> for Radam {
    const NAME: &'static str = "radam";
    const TENSORS: [&'static str; 4] = ["x", "g", "m", "v"];
    const WGSL: &'static str = "let old = x * {{shrink}};
    g = g * {{sign}};
    if ({{decay}} != 0.0) { g += old * {{decay}}; }
    m += {{w1}} * (g - m);
    v = v * {{b2}} + {{w2}} * g * g;
    x = m * {{size}};
    if ({{adaptive}} != 0.0) { x = x / (sqrt_(v) + {{eps}}); }
    x = old + x;";
    fn rule<T: Float>(self) -> impl Fn([T; 4]) -> [T; 4] {
        let n = T::from_f64;
        let (shrink, sign, decay, decays) = (n(self.shrink), n(self.sign), n(self.decay), self.decay != 0.0);
        let (w1, b2, w2) = (n(1.0 - self.beta1), n(self.beta2), n(1.0 - self.beta2));
        let (size, eps, adaptive) = (n(-self.size), n(self.eps), self.adaptive);
        move |[p, g, m, v]| {
            let old = p.times(shrink);
            let d = decayed(g.times(sign), old, decay, decays);
            let m = m.plus(w1.times(d.minus(m)));
            let v = v.times(b2).plus(w2.times(d).times(d));
            let change = m.times(size);
            [old.plus(if adaptive { change.divide(v.sqrt().plus(eps)) } else { change }), g, m, v]
        }
    }
    fn numbers(self) -> Numbers {
        smallvec![
            ("shrink", self.shrink),
            ("decay", self.decay),
            ("sign", self.sign),
            ("w1", 1.0 - self.beta1),
            ("b2", self.beta2),
            ("w2", 1.0 - self.beta2),
            ("size", -self.size),
            ("adaptive", if self.adaptive { 1.0 } else { 0.0 }),
            ("eps", self.eps),
        ]
    }
}
