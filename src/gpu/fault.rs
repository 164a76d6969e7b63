//! What a kernel may refuse, and the four words in which it reports that: code, index, size, dimension.
//!
//! A kernel cannot fail. It leaves the first bad value in the fault block of its device; the driver looks at the block
//! when the host next waits and raises the error that is written here.

use crate::error::Error;

/// Whose wording the error of a bad index has; the number is the code in the fault block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// gather, scatter: a `RuntimeError`.
    Reach = 1,
    /// Advanced indexing: an `IndexError`; negative indices count from the end.
    Bounds = 2,
    /// Selection, addition, embedding.
    Range = 3,
    /// Classes of a loss.
    Class = 4,
}

/// What a kernel refuses beside indices: the text of a `RuntimeError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoProbability,
    NoChance,
    NoWeights,
    /// Where the tensor is zero, not where it is true.
    DivisionByZero,
}

const FIRST_REFUSAL: u32 = 5;

impl Refusal {
    /// In the order of the variants.
    pub(super) const TEXTS: [&'static str; 4] = [
        "all elements of input should be between 0 and 1",
        "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
        "invalid multinomial distribution: expected finite weights that are not negative and have a positive sum",
        "ZeroDivisionError",
    ];
    pub(super) fn code(self) -> u32 {
        self as u32 + FIRST_REFUSAL
    }
}

/// The error that a fault block holds, if it holds one.
pub(super) fn error_of(block: [u32; 4]) -> Option<Error> {
    let [code, index, size, dim] = block;
    let text = format!("index {} is out of bounds for dimension {dim} with size {size}", index as i32);
    match code {
        0 => None,
        1 => Some(Error::runtime(text)),
        2 => Some(Error::index(text)),
        3 => Some(Error::index("index out of range in self")),
        4 => Some(Error::index(format!("Target {} is out of bounds.", index as i32))),
        other => Refusal::TEXTS.get((other - FIRST_REFUSAL) as usize).map(|text| Error::runtime(*text)),
    }
}
