//! Adadelta (Zeiler, arXiv:1212.5701).

use super::pass::{Numbers, Update, run, writes_lists};
use super::{STEP, decayed, sign};
use crate::cpu::arith::Float;
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_ADADELTA_];

pub static FUSED_ADADELTA_: Op = Op {
    sig: sig(
        "_fused_adadelta_(Tensor![] self, Tensor[] grads, Tensor![] square_avgs, Tensor![] acc_deltas, *, float lr, float rho, float eps, float weight_decay, bool maximize) -> ()",
    ),
    doc: "One step of Adadelta: writes to the parameters `self`, `square_avgs` and `acc_deltas`.",
    body: writes_lists(|c, _| {
        let [lr, rho, eps, decay] = [c.float("lr")?, c.float("rho")?, c.float("eps")?, c.float("weight_decay")?];
        let update = Adadelta { lr, rho, eps, decay, sign: sign(c.flag("maximize")) };
        run(c, [0, 1, 2, 3], |_| Ok(update))
    }),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](pos, nograd), f32[4](pos, nograd)], [f32[2,3](pos, nograd), f32[4](pos, nograd)], lr=0.1, rho=0.9, eps=1e-06, weight_decay=0.1, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](pos, nograd)], [f32[2,3](pos, nograd)], lr=1.0, rho=0.9, eps=1e-06, weight_decay=0.0, maximize=True",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [], lr=1.0, rho=0.9, eps=1e-06, weight_decay=0.0, maximize=False",
        "RuntimeError",
        "expected one tensor per parameter",
    )],
    ..STEP
};

#[derive(Clone, Copy)]
struct Adadelta {
    lr: f64,
    rho: f64,
    eps: f64,
    decay: f64,
    sign: f64,
}

impl Update<4> for Adadelta {
    const NAME: &'static str = "adadelta";
    const TENSORS: [&'static str; 4] = ["x", "g", "v", "u"];
    const WGSL: &'static str = "g = g * {{sign}};
    if ({{decay}} != 0.0) { g += x * {{decay}}; }
    v = v * {{rho}} + {{rest}} * g * g;
    let change = sqrt_(u + {{eps}}) / sqrt_(v + {{eps}}) * g;
    u = u * {{rho}} + {{rest}} * change * change;
    x += {{lr}} * change;";
    fn rule<T: Float>(self) -> impl Fn([T; 4]) -> [T; 4] {
        let n = T::from_f64;
        let (lr, rho, rest, eps) = (n(-self.lr), n(self.rho), n(1.0 - self.rho), n(self.eps));
        let (sign, decay, decays) = (n(self.sign), n(self.decay), self.decay != 0.0);
        move |[p, g, v, u]| {
            let d = decayed(g.times(sign), p, decay, decays);
            let v = v.times(rho).plus(rest.times(d).times(d));
            let change = u.plus(eps).sqrt().divide(v.plus(eps).sqrt()).times(d);
            let u = u.times(rho).plus(rest.times(change).times(change));
            [p.plus(lr.times(change)), g, v, u]
        }
    }
    fn numbers(self) -> Numbers {
        smallvec![
            ("lr", -self.lr),
            ("rho", self.rho),
            ("rest", 1.0 - self.rho),
            ("eps", self.eps),
            ("decay", self.decay),
            ("sign", self.sign),
        ]
    }
}
