//! RMSprop (Hinton, lecture 6 of "Neural Networks for Machine Learning"), centred form after arXiv:1308.0850.

use super::pass::{Numbers, Update, run, writes_lists};
use super::{STEP, decayed, sign};
use crate::cpu::arith::Float;
use crate::error::Result;
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_RMSPROP_];

pub static FUSED_RMSPROP_: Op = Op {
    sig: sig(
        "_fused_rmsprop_(Tensor![] self, Tensor[] grads, Tensor![] square_avgs, Tensor![] grad_avgs, Tensor![] momentum_buffer_list, *, float lr, float alpha, float eps, float weight_decay, float momentum, bool centered, bool maximize) -> ()",
    ),
    doc: "One step of RMSprop: writes to the parameters `self`, `square_avgs`, with `centered` to `grad_avgs`, and with momentum to `momentum_buffer_list`.",
    body: writes_lists(|c, _| {
        let s = Rmsprop::of(c)?;
        match (c.flag("centered"), s.momentum != 0.0) {
            (false, false) => run(c, [0, 1, 2], |_| Ok(Plain(s))),
            (true, false) => run(c, [0, 1, 2, 3], |_| Ok(Centered(s))),
            (false, true) => run(c, [0, 1, 2, 4], |_| Ok(Momentum(s))),
            (true, true) => run(c, [0, 1, 2, 3, 4], |_| Ok(CenteredMomentum(s))),
        }
    }),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](pos, nograd), f32[4](pos, nograd)], [], [], lr=0.1, alpha=0.9, eps=1e-08, weight_decay=0.1, momentum=0.0, centered=False, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](= 4, 5, 6, 7, 8, 9, nograd)], [f32[2,3](= 1, -1, 2, -2, 1, 0, nograd)], [], lr=0.1, alpha=0.9, eps=1e-08, weight_decay=0.0, momentum=0.0, centered=True, maximize=True",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](pos, nograd)], [], [f32[2,3](nograd)], lr=0.1, alpha=0.9, eps=1e-08, weight_decay=0.1, momentum=0.5, centered=False, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](= 4, 5, 6, 7, 8, 9, nograd)], [f32[2,3](= 1, -1, 2, -2, 1, 0, nograd)], [f32[2,3](nograd)], lr=0.1, alpha=0.9, eps=1e-08, weight_decay=0.0, momentum=0.5, centered=True, maximize=False",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[2](nograd)], [f32[3](nograd)], [], [], lr=0.1, alpha=0.9, eps=1e-08, weight_decay=0.0, momentum=0.0, centered=False, maximize=False",
        "RuntimeError",
        "must have the shape",
    )],
    ..STEP
};

#[derive(Clone, Copy)]
struct Rmsprop {
    lr: f64,
    alpha: f64,
    eps: f64,
    decay: f64,
    momentum: f64,
    sign: f64,
}

impl Rmsprop {
    fn of(c: &Call) -> Result<Rmsprop> {
        let [lr, alpha, eps, decay, momentum] =
            [c.float("lr")?, c.float("alpha")?, c.float("eps")?, c.float("weight_decay")?, c.float("momentum")?];
        Ok(Rmsprop { lr, alpha, eps, decay, momentum, sign: sign(c.flag("maximize")) })
    }
    /// The gradient to follow, from the parameter and its gradient.
    fn direction<T: Float>(self) -> impl Fn(T, T) -> T {
        let (sign, decay, decays) = (T::from_f64(self.sign), T::from_f64(self.decay), self.decay != 0.0);
        move |p, g| decayed(g.times(sign), p, decay, decays)
    }
    /// The average of the square, from the direction and the old average.
    fn square<T: Float>(self) -> impl Fn(T, T) -> T {
        let (alpha, rest) = (T::from_f64(self.alpha), T::from_f64(1.0 - self.alpha));
        move |d, v| v.times(alpha).plus(rest.times(d).times(d))
    }
    /// The average of the direction, from the direction and the old average.
    fn mean<T: Float>(self) -> impl Fn(T, T) -> T {
        let rest = T::from_f64(1.0 - self.alpha);
        move |d, m| m.plus(rest.times(d.minus(m)))
    }
    /// `number * direction / (sqrt(average) + eps)`.
    fn scaled<T: Float>(self, number: f64) -> impl Fn(T, T) -> T {
        let (number, eps) = (T::from_f64(number), T::from_f64(self.eps));
        move |d, average| number.times(d).divide(average.sqrt().plus(eps))
    }
    fn numbers(self) -> Numbers {
        smallvec![
            ("lr", -self.lr),
            ("alpha", self.alpha),
            ("rest", 1.0 - self.alpha),
            ("eps", self.eps),
            ("decay", self.decay),
            ("sign", self.sign),
        ]
    }
    fn with_momentum(self) -> Numbers {
        let mut all = self.numbers();
        all.push(("momentum", self.momentum));
        all
    }
}

#[derive(Clone, Copy)]
struct Plain(Rmsprop);
#[derive(Clone, Copy)]
struct Centered(Rmsprop);
#[derive(Clone, Copy)]
struct Momentum(Rmsprop);
#[derive(Clone, Copy)]
struct CenteredMomentum(Rmsprop);

impl Update<3> for Plain {
    const NAME: &'static str = "rmsprop";
    const TENSORS: [&'static str; 3] = ["x", "g", "v"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    v = v * {{alpha}} + {{rest}} * g * g;
    x += {{lr}} * g / (sqrt_(v) + {{eps}});";
    fn rule<T: Float>(self) -> impl Fn([T; 3]) -> [T; 3] {
        let s = self.0;
        let (direction, square, scaled) = (s.direction(), s.square(), s.scaled(-s.lr));
        move |[p, g, v]| {
            let d = direction(p, g);
            let v = square(d, v);
            [p.plus(scaled(d, v)), g, v]
        }
    }
    fn numbers(self) -> Numbers {
        self.0.numbers()
    }
}

impl Update<4> for Centered {
    const NAME: &'static str = "centred rmsprop";
    const TENSORS: [&'static str; 4] = ["x", "g", "v", "m"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    v = v * {{alpha}} + {{rest}} * g * g;
    m += {{rest}} * (g - m);
    x += {{lr}} * g / (sqrt_(v - m * m) + {{eps}});";
    fn rule<T: Float>(self) -> impl Fn([T; 4]) -> [T; 4] {
        let s = self.0;
        let (direction, square, mean, scaled) = (s.direction(), s.square(), s.mean(), s.scaled(-s.lr));
        move |[p, g, v, m]| {
            let d = direction(p, g);
            let (v, m) = (square(d, v), mean(d, m));
            [p.plus(scaled(d, v.minus(m.times(m)))), g, v, m]
        }
    }
    fn numbers(self) -> Numbers {
        self.0.numbers()
    }
}

impl Update<4> for Momentum {
    const NAME: &'static str = "rmsprop with momentum";
    const TENSORS: [&'static str; 4] = ["x", "g", "v", "b"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    v = v * {{alpha}} + {{rest}} * g * g;
    b = b * {{momentum}} + g / (sqrt_(v) + {{eps}});
    x += {{lr}} * b;";
    fn rule<T: Float>(self) -> impl Fn([T; 4]) -> [T; 4] {
        let s = self.0;
        let (direction, square, scaled) = (s.direction(), s.square(), s.scaled(1.0));
        let (lr, momentum) = (T::from_f64(-s.lr), T::from_f64(s.momentum));
        move |[p, g, v, b]| {
            let d = direction(p, g);
            let v = square(d, v);
            let b = b.times(momentum).plus(scaled(d, v));
            [p.plus(lr.times(b)), g, v, b]
        }
    }
    fn numbers(self) -> Numbers {
        self.0.with_momentum()
    }
}

impl Update<5> for CenteredMomentum {
    const NAME: &'static str = "centred rmsprop with momentum";
    const TENSORS: [&'static str; 5] = ["x", "g", "v", "m", "b"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    v = v * {{alpha}} + {{rest}} * g * g;
    m += {{rest}} * (g - m);
    b = b * {{momentum}} + g / (sqrt_(v - m * m) + {{eps}});
    x += {{lr}} * b;";
    fn rule<T: Float>(self) -> impl Fn([T; 5]) -> [T; 5] {
        let s = self.0;
        let (direction, square, mean, scaled) = (s.direction(), s.square(), s.mean(), s.scaled(1.0));
        let (lr, momentum) = (T::from_f64(-s.lr), T::from_f64(s.momentum));
        move |[p, g, v, m, b]| {
            let d = direction(p, g);
            let (v, m) = (square(d, v), mean(d, m));
            let b = b.times(momentum).plus(scaled(d, v.minus(m.times(m))));
            [p.plus(lr.times(b)), g, v, m, b]
        }
    }
    fn numbers(self) -> Numbers {
        self.0.with_momentum()
    }
}
