//! Stochastic gradient descent with momentum.

use super::pass::{Numbers, Update, items, run, writes_lists};
use super::{STEP, decayed, sign};
use crate::cpu::arith::Float;
use crate::cpu::num::Fuse;
use crate::cpu::simd::{self, Kernel};
use crate::error::Result;
use crate::gpu::Step;
use crate::op::*;
use smallvec::smallvec;

pub static FUSED_SGD_: Op = Op {
    sig: "_fused_sgd_(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step) -> ()",
    doc: "One step of stochastic gradient descent: writes to the parameters `self` and, with momentum, to `momentum_buffer_list`, which the first step fills.",
    body: writes_lists(|c, _| {
        let s = Sgd::of(c)?;
        if s.momentum == 0.0 {
            run(c, &items(c, [0, 1], |_| Ok(Plain(s)))?)
        } else {
            run(c, &items(c, [0, 1, 2], |_| Ok(Momentum(s)))?)
        }
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
        let [decay, momentum, lr, dampening] = [c.float(3)?, c.float(4)?, c.float(5)?, c.float(6)?];
        Ok(Sgd { decay, momentum, lr, dampening, nesterov: c.flag(7), maximize: c.flag(8), first: c.flag(9) })
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
    const SHADER: Step = Step::Sgd;
    const NAMES: [&'static str; 2] = ["x", "g"];
    fn run<T: Float>(self, [p, g]: [&mut [T]; 2]) {
        simd::run(SgdRun { s: self.0, p, g, buffer: None });
    }
    fn numbers(self) -> Numbers {
        self.0.numbers()
    }
}

impl Update<3> for Momentum {
    const SHADER: Step = Step::SgdMomentum;
    const NAMES: [&'static str; 3] = ["x", "g", "b"];
    fn run<T: Float>(self, [p, g, b]: [&mut [T]; 3]) {
        simd::run(SgdRun { s: self.0, p, g, buffer: Some(b) });
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

struct SgdRun<'a, T> {
    s: Sgd,
    p: &'a mut [T],
    g: &'a mut [T],
    buffer: Option<&'a mut [T]>,
}

impl<T: Float> Kernel for SgdRun<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        let (s, n) = (self.s, T::from_f64);
        let (sign, decay, lr) = (n(sign(s.maximize)), n(s.decay), n(-s.lr));
        let decays = s.decay != 0.0;
        let Some(buffer) = self.buffer else {
            self.p
                .iter_mut()
                .zip(self.g.iter())
                .for_each(|(p, g)| *p = p.plus(lr.times(decayed(g.times(sign), *p, decay, decays))));
            return;
        };
        let (momentum, kept) = (n(s.momentum), n(1.0 - s.dampening));
        for ((p, g), b) in self.p.iter_mut().zip(self.g.iter()).zip(buffer.iter_mut()) {
            let g = decayed(g.times(sign), *p, decay, decays);
            *b = if s.first { g } else { b.times(momentum).plus(kept.times(g)) };
            *p = p.plus(lr.times(if s.nesterov { g.plus(momentum.times(*b)) } else { *b }));
        }
    }
}
