//! Stochastic gradient descent with momentum.

use super::pass::{Numbers, Update, run, writes_lists};
use super::{STEP, decayed, sign};
use crate::cpu::arith::Float;
use crate::error::Result;
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_SGD_];

pub static FUSED_SGD_: Op = Op {
    sig: sig(
        "_fused_sgd_(Tensor![] self, Tensor[] grads, Tensor![] momentum_buffer_list, *, float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step) -> ()",
    ),
    doc: "One step of stochastic gradient descent: writes to the parameters `self` and, with momentum, to `momentum_buffer_list`, which the first step fills.",
    body: writes_lists(|c, _| {
        let s = Sgd::of(c)?;
        if s.momentum == 0.0 { run(c, [0, 1], |_| Ok(Plain(s))) } else { run(c, [0, 1, 2], |_| Ok(Momentum(s))) }
    }),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [], weight_decay=0.1, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](nograd)], weight_decay=0.0, momentum=0.9, lr=0.1, dampening=0.0, nesterov=True, maximize=True, is_first_step=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](nograd)], weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.5, nesterov=False, maximize=False, is_first_step=True",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[3](nograd)], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=False",
        "RuntimeError",
        "must have the shape",
    )],
    ..STEP
};

#[derive(Clone, Copy)]
struct Sgd {
    decay: f64,
    momentum: f64,
    lr: f64,
    dampening: f64,
    nesterov: bool,
    maximize: bool,
    first: bool,
}

impl Sgd {
    fn of(c: &Call) -> Result<Sgd> {
        let [decay, momentum, lr, dampening] =
            [c.float("weight_decay")?, c.float("momentum")?, c.float("lr")?, c.float("dampening")?];
        Ok(Sgd {
            decay,
            momentum,
            lr,
            dampening,
            nesterov: c.flag("nesterov"),
            maximize: c.flag("maximize"),
            first: c.flag("is_first_step"),
        })
    }
    /// The gradient to follow, from the parameter and its gradient.
    fn direction<T: Float>(self) -> impl Fn(T, T) -> T {
        let (sign, decay, decays) = (T::from_f64(sign(self.maximize)), T::from_f64(self.decay), self.decay != 0.0);
        move |p, g| decayed(g.times(sign), p, decay, decays)
    }
    fn numbers(self) -> Numbers {
        smallvec![("lr", -self.lr), ("sign", sign(self.maximize)), ("decay", self.decay)]
    }
}

#[derive(Clone, Copy)]
struct Plain(Sgd);
#[derive(Clone, Copy)]
struct Momentum(Sgd);

impl Update<2> for Plain {
    const NAME: &'static str = "sgd";
    const TENSORS: [&'static str; 2] = ["x", "g"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    x += {{lr}} * g;";
    fn rule<T: Float>(self) -> impl Fn([T; 2]) -> [T; 2] {
        let (direction, lr) = (self.0.direction(), T::from_f64(-self.0.lr));
        move |[p, g]| [p.plus(lr.times(direction(p, g))), g]
    }
    fn numbers(self) -> Numbers {
        self.0.numbers()
    }
}

impl Update<3> for Momentum {
    const NAME: &'static str = "sgd with momentum";
    const TENSORS: [&'static str; 3] = ["x", "g", "b"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    if ({{keep}} != 0.0) { b = b * {{momentum}} + {{kept}} * g; } else { b = g; }
    if ({{ahead}} != 0.0) { g += {{momentum}} * b; } else { g = b; }
    x += {{lr}} * g;";
    fn rule<T: Float>(self) -> impl Fn([T; 3]) -> [T; 3] {
        let s = self.0;
        let (direction, lr) = (s.direction(), T::from_f64(-s.lr));
        let (momentum, kept) = (T::from_f64(s.momentum), T::from_f64(1.0 - s.dampening));
        move |[p, g, b]| {
            let d = direction(p, g);
            let b = if s.first { d } else { b.times(momentum).plus(kept.times(d)) };
            [p.plus(lr.times(if s.nesterov { d.plus(momentum.times(b)) } else { b })), g, b]
        }
    }
    fn numbers(self) -> Numbers {
        let (s, flag) = (self.0, |on: bool| if on { 1.0 } else { 0.0 });
        let mut all = s.numbers();
        all.extend([
            ("keep", flag(!s.first)),
            ("ahead", flag(s.nesterov)),
            ("momentum", s.momentum),
            ("kept", 1.0 - s.dampening),
        ]);
        all
    }
}
