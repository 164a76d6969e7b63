//! The Mersenne Twister MT19937, the generator of the CPU, with the words, numbers and saved states of PyTorch's.
//!
//! Note [Random numbers on the CPU]: a seed gives the values that it gives in PyTorch. Words are used in the order in
//! which elements lie in memory; a 64-bit word is two, the high half first. `random.rs` says what is made of them. The
//! twister is one sequence, so one thread makes its words; what is computed from them is split between threads, and
//! values do not depend on how. Source: M. Matsumoto and T. Nishimura, "Mersenne Twister: a 623-dimensionally
//! equidistributed uniform pseudo-random number generator", ACM TOMACS 8 (1998).

use super::isa::{Isa, isa};
use crate::error::{Error, Result};
use std::f64::consts::TAU;

/// Words of state, and how far ahead the word lies that a new one is mixed with.
const N: usize = 624;
const M: usize = 397;
/// Bytes of a saved state: seed, `left`, `seeded`, `next`, the words in 64 bits each, then normal numbers.
pub const STATE_BYTES: usize = 24 + 8 * N + 40;
/// Where the second normal number of a pair, and whether there is one, stand in a saved state.
const SPARE: usize = 24 + 8 * N + 8;
const HAS_SPARE: usize = SPARE + 16;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mersenne {
    seed: u64,
    state: [u32; N],
    /// The next word, and one more than how many are left before the state is renewed.
    next: usize,
    left: usize,
    /// The bits of the second normal number of a pair.
    spare: Option<u64>,
}

impl Mersenne {
    /// The sequence of a seed, of which the low 32 bits count.
    pub fn new(seed: u64) -> Mersenne {
        let mut state = [seed as u32; N];
        for i in 1..N {
            let before = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(before ^ before >> 30).wrapping_add(i as u32);
        }
        Mersenne { seed, state, next: 0, left: 1, spare: None }
    }
    pub fn seed(&self) -> u64 {
        self.seed
    }
    /// The next words.
    pub fn fill(&mut self, out: &mut [u32]) {
        let mut out = out;
        while !out.is_empty() {
            let now = self.available().min(out.len());
            let (part, rest) = out.split_at_mut(now);
            temper_all(&self.state[self.next..self.next + now], part);
            self.used(now);
            out = rest;
        }
    }
    /// Passes over `n` words.
    pub fn skip(&mut self, mut n: usize) {
        while n > 0 {
            let now = self.available().min(n);
            self.used(now);
            n -= now;
        }
    }
    /// Words that the state still holds, after renewing it if there are none.
    fn available(&mut self) -> usize {
        if self.left == 1 {
            renew(&mut self.state);
            (self.next, self.left) = (0, N + 1);
        }
        self.left - 1
    }
    fn used(&mut self, n: usize) {
        self.next += n;
        self.left -= n;
    }
    pub fn word(&mut self) -> u32 {
        self.available();
        let word = temper(self.state[self.next]);
        self.used(1);
        word
    }
    pub fn long_word(&mut self) -> u64 {
        let high = self.word();
        (high as u64) << 32 | self.word() as u64
    }
    /// A number in [0, 1) of 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.long_word() & ((1 << 53) - 1)) as f64 * 2f64.powi(-53)
    }
    /// A standard normal number: Box-Muller gives two, the second of which is kept for the next call.
    pub fn normal(&mut self) -> f64 {
        if let Some(bits) = self.spare.take() {
            return f64::from_bits(bits);
        }
        let (turn, u) = (self.unit(), self.unit());
        let (radius, angle) = ((-2.0 * (-u).ln_1p()).sqrt(), TAU * turn);
        self.spare = Some((radius * angle.sin()).to_bits());
        radius * angle.cos()
    }

    /// The state as PyTorch saves it.
    pub fn to_bytes(&self) -> [u8; STATE_BYTES] {
        let mut bytes = [0; STATE_BYTES];
        let mut put = |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(0, self.seed);
        put(8, 1 << 32 | self.left as u64);
        put(16, self.next as u64);
        self.state.iter().enumerate().for_each(|(i, w)| put(24 + 8 * i, *w as u64));
        put(SPARE, self.spare.unwrap_or(0));
        put(HAS_SPARE, self.spare.is_some() as u64);
        bytes
    }
    /// Errors: RuntimeError for another length, and for numbers that no state has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Mersenne> {
        if bytes.len() != STATE_BYTES {
            return Err(Error::runtime(format!(
                "Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be {}",
                bytes.len()
            )));
        }
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (seed, left, seeded, next) = (long(0), long(8) as u32 as usize, long(8) >> 32, long(16));
        let inside = (1..=N).contains(&left) && next <= N as u64 && (left == 1 || next as usize + left - 1 <= N);
        if !inside || seeded != 1 {
            return Err(Error::runtime("Invalid mt19937 state"));
        }
        let state = std::array::from_fn(|i| long(24 + 8 * i) as u32);
        let spare = (long(HAS_SPARE) as u32 != 0).then(|| long(SPARE));
        Ok(Mersenne { seed, state, next: next as usize, left, spare })
    }
}

#[inline(always)]
fn temper(word: u32) -> u32 {
    let mut y = word;
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c_5680;
    y ^= y << 15 & 0xefc6_0000;
    y ^ y >> 18
}

/// The new word, of this one, the next, and the one `M` ahead.
#[inline(always)]
fn twist(this: u32, next: u32, ahead: u32) -> u32 {
    let y = this & 0x8000_0000 | next & 0x7fff_ffff;
    ahead ^ y >> 1 ^ (0x9908_b0df & 0u32.wrapping_sub(next & 1))
}

#[inline(always)]
fn renew_loops(state: &mut [u32; N]) {
    for i in 0..N - M {
        state[i] = twist(state[i], state[i + 1], state[i + M]);
    }
    // The words ahead are new ones: at most N - M at a time do not depend on each other.
    for (from, to) in [(N - M, 2 * (N - M)), (2 * (N - M), N - 1)] {
        let (new, old) = state.split_at_mut(from);
        for i in 0..to - from {
            old[i] = twist(old[i], old[i + 1], new[from + M - N + i]);
        }
    }
    state[N - 1] = twist(state[N - 1], state[0], state[M - 1]);
}

/// SAFETY: the processor has the features.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn renew_avx2(state: &mut [u32; N]) {
    renew_loops(state)
}
fn renew(state: &mut [u32; N]) {
    match isa() >= Isa::Avx2 {
        // SAFETY: checked.
        true => unsafe { renew_avx2(state) },
        false => renew_loops(state),
    }
}

#[inline(always)]
fn temper_loop(words: &[u32], out: &mut [u32]) {
    out.iter_mut().zip(words).for_each(|(o, w)| *o = temper(*w));
}
/// SAFETY: the processor has the features.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
unsafe fn temper_avx2(words: &[u32], out: &mut [u32]) {
    temper_loop(words, out)
}
fn temper_all(words: &[u32], out: &mut [u32]) {
    match isa() >= Isa::Avx2 {
        // SAFETY: checked.
        true => unsafe { temper_avx2(words, out) },
        false => temper_loop(words, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first and the ten thousandth word of the seed 5489, as C++'s standard states them for `std::mt19937`.
    #[test]
    fn known_answers() {
        let mut m = Mersenne::new(5489);
        assert_eq!(m.word(), 3_499_211_612);
        m.skip(9998);
        assert_eq!(m.word(), 4_123_659_995);
    }

    #[test]
    fn words_do_not_depend_on_how_they_are_asked_for() {
        let (mut a, mut b) = (Mersenne::new(42), Mersenne::new(42));
        let one: Vec<u32> = (0..3000).map(|_| a.word()).collect();
        let mut many = vec![0; 3000];
        for part in many.chunks_mut(701) {
            b.fill(part);
        }
        assert_eq!(one, many);
        assert_eq!(a, b);
        b.skip(1300);
        a.fill(&mut vec![0; 1300]);
        assert_eq!(a, b);
    }

    #[test]
    fn states_are_kept() {
        let mut m = Mersenne::new(1 << 40 | 5);
        for drawn in [0, 1, 3, 1240, 1] {
            m.skip(drawn);
            assert_eq!(Mersenne::from_bytes(&m.to_bytes()).unwrap(), m);
        }
        m.normal();
        let mut again = Mersenne::from_bytes(&m.to_bytes()).unwrap();
        assert_eq!(again.normal(), m.normal());
        // Every word of the state has been used.
        let mut used_up = Mersenne::new(3);
        used_up.skip(N);
        assert_eq!(Mersenne::from_bytes(&used_up.to_bytes()).unwrap().word(), used_up.word());
        // Nothing left; more left than there are; not seeded; a place that there is not.
        for (at, value) in [(8, 1 << 32), (8, 1 << 32 | 625), (8, 1), (16, 625), (16, 1 << 40)] {
            let mut wrong = used_up.to_bytes();
            wrong[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            assert!(Mersenne::from_bytes(&wrong).is_err(), "{at} {value}");
        }
        let mut beyond = m.to_bytes();
        beyond[16..24].copy_from_slice(&u64::to_le_bytes(600));
        assert!(Mersenne::from_bytes(&beyond).is_err());
        assert!(Mersenne::from_bytes(&[0; 16]).is_err());
    }
}
