//! Adam, AMSGrad and AdamW (arXiv:1412.6980, 1904.09237, 1711.05101).

use super::pass::{Numbers, Update, run, writes_lists};
use super::{Powers, STEP, decayed, sign, steps};
use crate::cpu::arith::{Float, greater};
use crate::error::Result;
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_ADAM_, &FUSED_ADAMW_];

pub static FUSED_ADAM_: Op = Op {
    sig: sig(
        "_fused_adam_(Tensor![] self, Tensor[] grads, Tensor![] exp_avgs, Tensor![] exp_avg_sqs, Tensor![] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize) -> ()",
    ),
    doc: "One step of Adam: writes to the parameters `self`, `exp_avgs`, `exp_avg_sqs` and, with `amsgrad`, `max_exp_avg_sqs`. `state_steps` count from 1.",
    body: writes_lists(|c, _| adam(c, false)),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](pos, nograd), f32[4](pos, nograd)], [], [f32[](=3, nograd), f32[](=1, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-08, amsgrad=False, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](pos, nograd)], [f32[2,3](pos, nograd)], [f32[](=3, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-08, amsgrad=True, maximize=True",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[3](nograd)], [f32[2](nograd)], [f32[2](nograd)], [], [f32[](=1, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-08, amsgrad=False, maximize=False",
        "RuntimeError",
        "must have the shape",
    )],
    ..STEP
};

pub static FUSED_ADAMW_: Op = Op {
    sig: sig(
        "_fused_adamw_(Tensor![] self, Tensor[] grads, Tensor![] exp_avgs, Tensor![] exp_avg_sqs, Tensor![] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize) -> ()",
    ),
    doc: "One step of AdamW: as `_fused_adam_`, with the parameters multiplied by `1 - lr * weight_decay` instead of the decay added to the gradients.",
    body: writes_lists(|c, _| adam(c, true)),
    samples: &[
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](pos, nograd)], [], [f32[](=3, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-08, amsgrad=False, maximize=False",
    ],
    errors: &[(
        "[f32[2](nograd)], [], [f32[2](nograd)], [f32[2](nograd)], [], [f32[](=1, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=1e-08, amsgrad=False, maximize=False",
        "RuntimeError",
        "expected one tensor per parameter",
    )],
    ..STEP
};

/// The numbers of a step of Adam.
#[derive(Clone, Copy)]
struct Adam {
    lr: f64,
    beta1: f64,
    beta2: f64,
    decay: f64,
    eps: f64,
    maximize: bool,
    decoupled: bool,
    /// `lr / (1 - beta1^step)` and `sqrt(1 - beta2^step)`.
    size: f64,
    root: f64,
}

impl Adam {
    fn of(c: &Call, decoupled: bool) -> Result<Adam> {
        let [lr, beta1, beta2, decay, eps] =
            [c.float("lr")?, c.float("beta1")?, c.float("beta2")?, c.float("weight_decay")?, c.float("eps")?];
        Ok(Adam { lr, beta1, beta2, decay, eps, maximize: c.flag("maximize"), decoupled, size: 0.0, root: 0.0 })
    }
    /// With the powers of both factors at a step.
    fn at(self, [power1, power2]: [f64; 2]) -> Adam {
        Adam { size: self.lr / (1.0 - power1), root: (1.0 - power2).sqrt(), ..self }
    }
    /// The parameter before the change, the averages of the gradient and of its square, from those before the step.
    fn moments<T: Float>(self) -> impl Fn([T; 4]) -> [T; 3] {
        let n = T::from_f64;
        let sign = n(sign(self.maximize));
        let shrink = if self.decoupled { n(1.0 - self.lr * self.decay) } else { T::ONE };
        let (decay, decays) = (n(self.decay), !self.decoupled && self.decay != 0.0);
        let (w1, b2, w2) = (n(1.0 - self.beta1), n(self.beta2), n(1.0 - self.beta2));
        move |[p, g, m, v]| {
            let old = p.times(shrink);
            let g = decayed(g.times(sign), old, decay, decays);
            [old, m.plus(w1.times(g.minus(m))), v.times(b2).plus(w2.times(g).times(g))]
        }
    }
    /// The parameter after the change, from that before, the average of the gradient and that of its square.
    fn moved<T: Float>(self) -> impl Fn([T; 3]) -> T {
        let (root, eps, size) = (T::from_f64(self.root), T::from_f64(self.eps), T::from_f64(-self.size));
        move |[old, m, v]| old.plus(size.times(m).divide(v.sqrt().divide(root).plus(eps)))
    }
    fn numbers(self) -> Numbers {
        smallvec![
            ("shrink", if self.decoupled { 1.0 - self.lr * self.decay } else { 1.0 }),
            ("decay", if self.decoupled { 0.0 } else { self.decay }),
            ("sign", sign(self.maximize)),
            ("w1", 1.0 - self.beta1),
            ("b2", self.beta2),
            ("w2", 1.0 - self.beta2),
            ("size", -self.size),
            ("root", self.root),
            ("eps", self.eps),
        ]
    }
}

/// With the running average of the squares under the root.
#[derive(Clone, Copy)]
struct Plain(Adam);
/// With the greatest of these averages so far.
#[derive(Clone, Copy)]
struct AmsGrad(Adam);

impl Update<4> for Plain {
    const NAME: &'static str = "adam";
    const TENSORS: [&'static str; 4] = ["x", "g", "m", "v"];
    const WGSL: &'static str = "let old = x * {{shrink}};
    g = g * {{sign}};
    if ({{decay}} != 0.0) { g += old * {{decay}}; }
    m += {{w1}} * (g - m);
    v = v * {{b2}} + {{w2}} * g * g;
    x = old + {{size}} * m / (sqrt_(v) / {{root}} + {{eps}});";
    fn rule<T: Float>(self) -> impl Fn([T; 4]) -> [T; 4] {
        let (moments, moved) = (self.0.moments(), self.0.moved());
        move |[p, g, m, v]| {
            let [old, m, v] = moments([p, g, m, v]);
            [moved([old, m, v]), g, m, v]
        }
    }
    fn numbers(self) -> Numbers {
        self.0.numbers()
    }
}

impl Update<5> for AmsGrad {
    const NAME: &'static str = "amsgrad";
    const TENSORS: [&'static str; 5] = ["x", "g", "m", "v", "u"];
    const WGSL: &'static str = "let old = x * {{shrink}};
    g = g * {{sign}};
    if ({{decay}} != 0.0) { g += old * {{decay}}; }
    m += {{w1}} * (g - m);
    v = v * {{b2}} + {{w2}} * g * g;
    u = max_(u, v);
    x = old + {{size}} * m / (sqrt_(u) / {{root}} + {{eps}});";
    fn rule<T: Float>(self) -> impl Fn([T; 5]) -> [T; 5] {
        let (moments, moved) = (self.0.moments(), self.0.moved());
        move |[p, g, m, v, greatest]| {
            let [old, m, v] = moments([p, g, m, v]);
            let greatest = greater(greatest, v);
            [moved([old, m, greatest]), g, m, v, greatest]
        }
    }
    fn numbers(self) -> Numbers {
        self.0.numbers()
    }
}

fn adam(c: &Call, decoupled: bool) -> Result<()> {
    let (steps, adam) = (steps(c)?, Adam::of(c, decoupled)?);
    let mut powers = Powers::of([adam.beta1, adam.beta2]);
    let mut at = |i: usize| adam.at(powers.at(steps[i]));
    if c.flag("amsgrad") {
        run(c, [0, 1, 2, 3, 4], |i| Ok(AmsGrad(at(i))))
    } else {
        run(c, [0, 1, 2, 3], |i| Ok(Plain(at(i))))
    }
}
