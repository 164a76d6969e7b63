//! The gradient.

use super::{CHUNK, Job, LINE, Order, TILE, each, groups, lanes, put};
use crate::cpu::arith::Float;
use crate::cpu::lanes::sums;
use crate::cpu::number_class::Fuse;
use crate::cpu::simd::Kernel;

pub(super) struct Backward<'a, T> {
    /// The output, its gradient, and the result.
    pub job: Job<'a, T, 3>,
    pub log: bool,
}
impl<T: Float> Kernel for Backward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<F: Fuse>(self) {
        match self.job.order {
            Order::Lines => self.lines::<F>(),
            Order::Columns => self.columns::<F>(),
            Order::Rows => self.rows::<F>(),
        }
    }
}
impl<T: Float> Backward<'_, T> {
    #[inline(always)]
    fn lines<F: Fuse>(self) {
        let Job { tiles, length, lines, buffers, .. } = self.job;
        let [a, b, _] = buffers.map(|b| b.as_mut_ptr());
        let pieces = || (0..length).step_by(LINE).map(|start| (start, LINE.min(length - start)));
        for [output, grad, out] in (0..lines).map(|i| tiles.map(|tile| tile.line(i))) {
            let mut sum = T::ZERO;
            for (start, n) in pieces() {
                // SAFETY: the pieces have `n` elements.
                let g = unsafe { std::slice::from_raw_parts(grad.piece(start, n, b), n) };
                let [more] = if self.log {
                    sums([g], |g| g)
                } else {
                    // SAFETY: as above.
                    let y = unsafe { std::slice::from_raw_parts(output.piece(start, n, a), n) };
                    sums([g, y], |[g, y]| [g.times(y)])
                };
                sum = sum.plus(more);
            }
            for (start, n) in pieces() {
                let (g, y, to) = (grad.piece(start, n, b), output.piece(start, n, a), out.place(start, a));
                // SAFETY: all have `n` elements.
                unsafe {
                    if self.log {
                        each([g, y], to, n, |[g, y]| g.minus(y.exp::<F>().times(sum)));
                    } else {
                        each([g, y], to, n, |[g, y]| y.times(g.minus(sum)));
                    }
                }
                out.keep(start, n, a);
            }
        }
    }

    #[inline(always)]
    fn columns<F: Fuse>(self) {
        let Job { tiles: [output, grad, out], length, lines, buffers: [a, b, c], .. } = self.job;
        output.read_columns([length, lines], a, c);
        grad.read_columns([length, lines], b, c);
        for first in groups(lines) {
            let at = |i: usize| i * lines + first;
            let mut sum = [T::ZERO; CHUNK];
            if self.log {
                for i in 0..length {
                    let g = lanes(b, at(i));
                    for l in 0..CHUNK {
                        sum[l] = sum[l].plus(g[l]);
                    }
                }
                for i in 0..length {
                    let (y, mut g) = (lanes(a, at(i)), lanes(b, at(i)));
                    for l in 0..CHUNK {
                        g[l] = g[l].minus(y[l].exp::<F>().times(sum[l]));
                    }
                    put(c, at(i), g);
                }
            } else {
                for i in 0..length {
                    let (y, g) = (lanes(a, at(i)), lanes(b, at(i)));
                    for l in 0..CHUNK {
                        sum[l] = sum[l].plus(g[l].times(y[l]));
                    }
                }
                for i in 0..length {
                    let (mut y, g) = (lanes(a, at(i)), lanes(b, at(i)));
                    for l in 0..CHUNK {
                        y[l] = y[l].times(g[l].minus(sum[l]));
                    }
                    put(c, at(i), y);
                }
            }
        }
        out.write_columns([length, lines], c, a);
    }

    #[inline(always)]
    fn rows<F: Fuse>(self) {
        let Job { tiles: [output, grad, out], length, lines, buffers: [a, b, _], .. } = self.job;
        let (y, g) = (&mut a[..lines], &mut b[..lines]);
        let mut sum = [T::ZERO; TILE];
        for i in 0..length {
            grad.read_row(i, g);
            if self.log {
                sum.iter_mut().zip(&*g).for_each(|(s, &g)| *s = s.plus(g));
            } else {
                output.read_row(i, y);
                sum.iter_mut().zip(&*g).zip(&*y).for_each(|((s, g), &y)| *s = s.plus(g.times(y)));
            }
        }
        for i in 0..length {
            grad.read_row(i, g);
            output.read_row(i, y);
            if self.log {
                g.iter_mut().zip(&*y).zip(&sum).for_each(|((g, y), &s)| *g = g.minus(y.exp::<F>().times(s)));
            } else {
                g.iter_mut().zip(&*y).zip(&sum).for_each(|((g, y), &s)| *g = y.times(g.minus(s)));
            }
            out.write_row(i, g);
        }
    }
}
