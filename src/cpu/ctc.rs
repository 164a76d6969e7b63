//! Connectionist temporal classification: the likelihood of a sequence of labels over all its alignments, and its gradient.
//!
//! Source: Graves et al., ICML 2006, section 4, in logarithms. The states of an alignment are the labels with a blank before,
//! between and after them; a step keeps the state, takes the next, or skips a blank between two different labels.

use super::view::ensure;
use crate::error::Result;

const NEVER: f64 = f64::NEG_INFINITY;

/// One sequence with its labels. All labels and the blank are less than `classes`.
pub struct Sequence<'a> {
    log_probs: &'a [f64],
    /// The distance between the log probabilities of two steps.
    stride: usize,
    steps: usize,
    classes: usize,
    labels: &'a [i64],
    blank: usize,
}

impl<'a> Sequence<'a> {
    /// Of log probabilities whose rows of `classes`, one for each of `steps`, begin `stride` apart.
    pub fn new(
        log_probs: &'a [f64],
        [stride, steps, classes]: [usize; 3],
        labels: &'a [i64],
        blank: usize,
    ) -> Result<Sequence<'a>> {
        let enough = steps == 0 || (steps - 1) * stride + classes <= log_probs.len();
        let known = labels.iter().all(|&l| (0..classes as i64).contains(&l)) && blank < classes;
        ensure(enough && known, "ctc")?;
        Ok(Sequence { log_probs, stride, steps, classes, labels, blank })
    }
    pub fn states(&self) -> usize {
        2 * self.labels.len() + 1
    }
    fn class(&self, state: usize) -> usize {
        if state.is_multiple_of(2) { self.blank } else { self.labels[state / 2] as usize }
    }
    fn row(&self, step: usize) -> &[f64] {
        &self.log_probs[step * self.stride..][..self.classes]
    }
    /// Whether a step may go from the state two before to this one.
    fn skips(&self, state: usize) -> bool {
        state >= 2 && self.class(state) != self.class(state - 2)
    }
    /// Writes the logarithms of the forward variables, one row of `width` per step, and returns the negative log likelihood.
    pub fn forward(&self, alpha: &mut [f64], width: usize) -> f64 {
        let n = self.states();
        alpha.fill(NEVER);
        if self.steps == 0 {
            return if n == 1 { 0.0 } else { f64::INFINITY };
        }
        for (s, a) in alpha.iter_mut().enumerate().take(n.min(2)) {
            *a = self.row(0)[self.class(s)];
        }
        for t in 1..self.steps {
            let (before, rest) = alpha.split_at_mut(t * width);
            let (before, row) = (&before[(t - 1) * width..], self.row(t));
            for (s, a) in rest.iter_mut().enumerate().take(n) {
                let next = if s > 0 { before[s - 1] } else { NEVER };
                let skipped = if self.skips(s) { before[s - 2] } else { NEVER };
                *a = log_sum([before[s], next, skipped]) + row[self.class(s)];
            }
        }
        let last = &alpha[(self.steps - 1) * width..][..n];
        -log_sum([last[n - 1], if n > 1 { last[n - 2] } else { NEVER }, NEVER])
    }
    /// Writes the gradient of the negative log likelihood `loss`, times `slope`: rows of `classes`. `beta` has room for two
    /// rows of states.
    pub fn backward(&self, alpha: &[f64], width: usize, loss: f64, slope: f64, beta: &mut [f64], grad: &mut [f64]) {
        let n = self.states();
        let (mut now, mut later) = beta[..2 * n].split_at_mut(n);
        for t in (0..self.steps).rev() {
            let (row, grad) = (self.row(t), &mut grad[t * self.classes..][..self.classes]);
            for s in 0..n {
                let ahead = |s: usize| if s < n { later[s] } else { NEVER };
                let onward = if t + 1 == self.steps {
                    if s + 2 < n { NEVER } else { 0.0 }
                } else {
                    let skipped = if s + 2 < n && self.skips(s + 2) { ahead(s + 2) } else { NEVER };
                    log_sum([ahead(s), ahead(s + 1), skipped])
                };
                now[s] = onward + row[self.class(s)];
            }
            grad.fill(NEVER);
            for (s, &b) in now.iter().enumerate() {
                let through = &mut grad[self.class(s)];
                *through = log_sum([*through, alpha[t * width + s] + b, NEVER]);
            }
            for (g, &p) in grad.iter_mut().zip(row) {
                *g = (p.exp() - (*g + loss - p).exp()) * slope;
            }
            std::mem::swap(&mut now, &mut later);
        }
    }
}

/// The logarithm of a sum of exponentials.
fn log_sum(terms: [f64; 3]) -> f64 {
    let greatest = terms.into_iter().fold(NEVER, f64::max);
    let shift = if greatest == NEVER { 0.0 } else { greatest };
    terms.map(|x| (x - shift).exp()).into_iter().sum::<f64>().ln() + shift
}
