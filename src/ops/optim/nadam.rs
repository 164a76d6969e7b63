//! NAdam: Adam with Nesterov momentum (Dozat, ICLR workshop, 2016).

use super::pass::{Numbers, Update, run, writes_lists};
use super::{Powers, STEP, decayed, numbers, rounded, sign, steps};
use crate::cpu::arith::Float;
use crate::dtype::Scalar;
use crate::op::*;
use smallvec::smallvec;

pub static OPS: &[&Op] = &[&FUSED_NADAM_];

pub static FUSED_NADAM_: Op = Op {
    sig: sig(
        "_fused_nadam_(Tensor![] self, Tensor[] grads, Tensor![] exp_avgs, Tensor![] exp_avg_sqs, Tensor![] mu_products, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float momentum_decay, float eps, bool decoupled_weight_decay, bool maximize) -> ()",
    ),
    doc: "One step of NAdam: writes to the parameters `self`, `exp_avgs`, `exp_avg_sqs` and `mu_products`, the products of the momenta of all steps, which begin with 1. `state_steps` count from 1.",
    body: writes_lists(|c, _| {
        let [lr, beta1, beta2] = [c.float("lr")?, c.float("beta1")?, c.float("beta2")?];
        let [decay, momentum_decay, eps] = [c.float("weight_decay")?, c.float("momentum_decay")?, c.float("eps")?];
        let (decoupled, sign) = (c.flag("decoupled_weight_decay"), sign(c.flag("maximize")));
        let (steps, mut products) = (steps(c)?, numbers(c, "mu_products", "product of momenta")?);
        let momentum = |step: f64| beta1 * (1.0 - 0.5 * 0.96_f64.powf(step * momentum_decay));
        for ((product, t), step) in products.iter_mut().zip(c.argument("mu_products").tensors()).zip(&steps) {
            *product = rounded(t, *product * rounded(t, momentum(*step)));
        }
        let mut powers = Powers::of([beta1, beta2]);
        let update = |i: usize| {
            let (now, ahead) = (momentum(steps[i]), momentum(steps[i] + 1.0));
            Ok(Nadam {
                shrink: if decoupled { 1.0 - lr * decay } else { 1.0 },
                decay: if decoupled { 0.0 } else { decay },
                sign,
                beta1,
                beta2,
                correction: 1.0 - powers.at(steps[i])[1],
                eps,
                by_grad: lr * (1.0 - now) / (1.0 - products[i]),
                by_mean: lr * ahead / (1.0 - products[i] * ahead),
            })
        };
        run(c, [0, 1, 2, 3], update)?;
        c.argument("mu_products")
            .tensors()
            .zip(&products)
            .try_for_each(|(t, product)| t.fill_raw(Scalar::Float(*product)))
    }),
    samples: &[
        "[f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](nograd), f32[4](nograd)], [f32[2,3](pos, nograd), f32[4](pos, nograd)], [f32[](=0.25, nograd), f32[](=1, nograd)], [f32[](=3, nograd), f32[](=1, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, momentum_decay=0.004, eps=1e-08, decoupled_weight_decay=False, maximize=False",
        "[f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](nograd)], [f32[2,3](pos, nograd)], [f32[](=0.25, nograd)], [f32[](=3, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, momentum_decay=0.004, eps=1e-08, decoupled_weight_decay=True, maximize=True",
    ],
    errors: &[(
        "[f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [f32[2](nograd)], [], [f32[](=1, nograd)], lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, momentum_decay=0.004, eps=1e-08, decoupled_weight_decay=False, maximize=False",
        "RuntimeError",
        "expected one product of momenta per parameter",
    )],
    ..STEP
};

#[derive(Clone, Copy)]
struct Nadam {
    shrink: f64,
    decay: f64,
    sign: f64,
    beta1: f64,
    beta2: f64,
    /// `1 - beta2^step`.
    correction: f64,
    eps: f64,
    /// What the gradient and the average of the gradients are multiplied by.
    by_grad: f64,
    by_mean: f64,
}

impl Update<4> for Nadam {
    const NAME: &'static str = "nadam";
    const TENSORS: [&'static str; 4] = ["x", "g", "m", "v"];
    const WGSL: &'static str = "let old = x * {{shrink}};
    g = g * {{sign}};
    if ({{decay}} != 0.0) { g += old * {{decay}}; }
    m += {{w1}} * (g - m);
    v = v * {{b2}} + {{w2}} * g * g;
    x = old - (g * {{by_grad}} + m * {{by_mean}}) / (sqrt_(v / {{correction}}) + {{eps}});";
    fn rule<T: Float>(self) -> impl Fn([T; 4]) -> [T; 4] {
        let n = T::from_f64;
        let (shrink, sign, decay, decays) = (n(self.shrink), n(self.sign), n(self.decay), self.decay != 0.0);
        let (w1, b2, w2) = (n(1.0 - self.beta1), n(self.beta2), n(1.0 - self.beta2));
        let (correction, eps) = (n(self.correction), n(self.eps));
        let (by_grad, by_mean) = (n(self.by_grad), n(self.by_mean));
        move |[p, g, m, v]| {
            let old = p.times(shrink);
            let d = decayed(g.times(sign), old, decay, decays);
            let m = m.plus(w1.times(d.minus(m)));
            let v = v.times(b2).plus(w2.times(d).times(d));
            let change = d.times(by_grad).plus(m.times(by_mean));
            [old.minus(change.divide(v.divide(correction).sqrt().plus(eps))), g, m, v]
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
            ("correction", self.correction),
            ("eps", self.eps),
            ("by_grad", self.by_grad),
            ("by_mean", self.by_mean),
        ]
    }
}
