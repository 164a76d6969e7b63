//! Adamax, the form of Adam with the infinity norm (arXiv:1412.6980, section 7.1).

use super::pass::{Numbers, Update, run, writes_lists};
use super::{Powers, STEP, decayed, sign, steps};
use crate::cpu::arith::{Float, greater};
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_ADAMAX_];

pub static FUSED_ADAMAX_: Op = Op {
    sig: sig(
        "_fused_adamax_(Tensor![] self, Tensor[] grads, Tensor![] exp_avgs, Tensor![] exp_infs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float eps, float weight_decay, bool maximize) -> ()",
    ),
    doc: "One step of Adamax: writes to the parameters `self`, `exp_avgs` and `exp_infs`. `state_steps` count from 1.",
    body: writes_lists(|c, _| {
        let [lr, beta1, beta2, eps, decay] =
            [c.float("lr")?, c.float("beta1")?, c.float("beta2")?, c.float("eps")?, c.float("weight_decay")?];
        let (steps, sign, mut powers) = (steps(c)?, sign(c.flag("maximize")), Powers::of([beta1, beta2]));
        let update = |i: usize| {
            let [power, _] = powers.at(steps[i]);
            Ok(Adamax { size: lr / (1.0 - power), beta1, beta2, eps, decay, sign })
        };
        run(c, [0, 1, 2, 3], update)
    }),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](pos, nograd), f32[4](pos, nograd)], [f32[](=3, nograd), f32[](=1, nograd)], lr=0.1, beta1=0.9, beta2=0.99, eps=1e-08, weight_decay=0.1, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](pos, nograd)], [f32[](=3, nograd)], lr=0.1, beta1=0.9, beta2=0.5, eps=1e-08, weight_decay=0.0, maximize=True",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [], lr=0.1, beta1=0.9, beta2=0.99, eps=1e-08, weight_decay=0.0, maximize=False",
        "RuntimeError",
        "expected one step count per parameter",
    )],
    ..STEP
};

#[derive(Clone, Copy)]
struct Adamax {
    /// `lr / (1 - beta1^step)`.
    size: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    decay: f64,
    sign: f64,
}

impl Update<4> for Adamax {
    const NAME: &'static str = "adamax";
    const TENSORS: [&'static str; 4] = ["x", "g", "m", "u"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    m += {{w1}} * (g - m);
    u = max_(u * {{b2}}, abs_(g) + {{eps}});
    x += {{size}} * (m / u);";
    fn rule<T: Float>(self) -> impl Fn([T; 4]) -> [T; 4] {
        let n = T::from_f64;
        let (size, w1, b2, eps) = (n(-self.size), n(1.0 - self.beta1), n(self.beta2), n(self.eps));
        let (sign, decay, decays) = (n(self.sign), n(self.decay), self.decay != 0.0);
        move |[p, g, m, u]| {
            let d = decayed(g.times(sign), p, decay, decays);
            let m = m.plus(w1.times(d.minus(m)));
            let u = greater(u.times(b2), d.abs().plus(eps));
            [p.plus(size.times(m.divide(u))), g, m, u]
        }
    }
    fn numbers(self) -> Numbers {
        smallvec![
            ("size", -self.size),
            ("w1", 1.0 - self.beta1),
            ("b2", self.beta2),
            ("eps", self.eps),
            ("decay", self.decay),
            ("sign", self.sign),
        ]
    }
}
