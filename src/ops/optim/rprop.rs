//! Resilient backpropagation (Riedmiller and Braun, ICNN 1993).

use super::pass::{Numbers, Update, run, writes_lists};
use super::{STEP, sign};
use crate::cpu::arith::{Float, greater, lesser};
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_RPROP_];

pub static FUSED_RPROP_: Op = Op {
    sig: sig(
        "_fused_rprop_(Tensor![] self, Tensor[] grads, Tensor![] prevs, Tensor![] step_sizes, *, float step_size_min, float step_size_max, float etaminus, float etaplus, bool maximize) -> ()",
    ),
    doc: "One step of Rprop: writes to the parameters `self`, to `prevs`, the last gradients, and to `step_sizes`.",
    body: writes_lists(|c, _| {
        let [least, most, shrink, grow] =
            [c.float("step_size_min")?, c.float("step_size_max")?, c.float("etaminus")?, c.float("etaplus")?];
        let update = Rprop { least, most, shrink, grow, sign: sign(c.flag("maximize")) };
        run(c, [0, 1, 2, 3], |_| Ok(update))
    }),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](pos, nograd), f32[4](pos, nograd)], step_size_min=1e-06, step_size_max=50.0, etaminus=0.5, etaplus=1.2, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](pos, nograd)], step_size_min=0.5, step_size_max=1.0, etaminus=0.5, etaplus=1.2, maximize=True",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [f32[3](nograd)], step_size_min=0.5, step_size_max=1.0, etaminus=0.5, etaplus=1.2, maximize=False",
        "RuntimeError",
        "must have the shape",
    )],
    ..STEP
};

#[derive(Clone, Copy)]
struct Rprop {
    least: f64,
    most: f64,
    shrink: f64,
    grow: f64,
    sign: f64,
}

impl Update<4> for Rprop {
    const NAME: &'static str = "rprop";
    const TENSORS: [&'static str; 4] = ["x", "g", "b", "s"];
    const WGSL: &'static str = "g = g * {{sign}};
    let turn = g * b;
    if (turn > 0.0) { s = s * {{grow}}; }
    if (turn < 0.0) { s = s * {{shrink}}; g = 0.0; }
    s = min_(max_(s, {{least}}), {{most}});
    x = x - sign_(g) * s;
    b = g;";
    fn rule<T: Float>(self) -> impl Fn([T; 4]) -> [T; 4] {
        let n = T::from_f64;
        let (least, most, shrink, grow, sign) =
            (n(self.least), n(self.most), n(self.shrink), n(self.grow), n(self.sign));
        let (zero, one) = (T::ZERO, T::ONE);
        move |[p, old, last, size]| {
            let g = old.times(sign);
            let turn = g.times(last);
            let factor = if turn > zero { grow } else { one };
            let size = size.times(if turn < zero { shrink } else { factor });
            let size = lesser(greater(size, least), most);
            // Where the sign turned, the last step went too far: nothing moves this time.
            let g = if turn < zero { zero } else { g };
            let ahead = if g > zero { one } else { zero };
            let back = if g < zero { one } else { zero };
            [p.minus(ahead.minus(back).times(size)), old, g, size]
        }
    }
    fn numbers(self) -> Numbers {
        smallvec![
            ("least", self.least),
            ("most", self.most),
            ("shrink", self.shrink),
            ("grow", self.grow),
            ("sign", self.sign),
        ]
    }
}
