//! Host memory whose size the caller of an op decides, reserved by fallible means: too much is an error, not an abort.
//!
//! `vec![x; n]`, `Vec::with_capacity` and `collect` end the process where the system refuses. They are for what is
//! bounded by a constant or by the numbers of dimensions and arguments; everything else comes from here, from
//! `cpu::temp` or from a tensor. `tests/architecture.rs` finds the exceptions.

use crate::error::{Error, Result};

#[cold]
fn refused<T>(n: usize) -> Error {
    Error::out_of_memory(n.saturating_mul(size_of::<T>()), "cpu")
}

/// An empty list with room for `n`.
pub fn room<T>(n: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(n).map_err(|_| refused::<T>(n))?;
    Ok(all)
}

/// `n` times the same value.
pub fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    let mut all = room(n)?;
    all.resize(n, value);
    Ok(all)
}

/// What an iterator gives.
pub fn list<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    try_list(items.into_iter().map(Ok))
}

/// What an iterator gives, up to the first error.
pub fn try_list<T>(items: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut items = items.into_iter();
    let mut all = room(items.size_hint().0)?;
    items.try_for_each(|x| -> Result<()> {
        if all.len() == all.capacity() {
            all.try_reserve(1).map_err(|_| refused::<T>(all.len() + 1))?;
        }
        all.push(x?);
        Ok(())
    })?;
    Ok(all)
}

/// A copy of a list.
pub fn copied<T: Copy>(from: &[T]) -> Result<Vec<T>> {
    let mut all = room(from.len())?;
    all.extend_from_slice(from);
    Ok(all)
}

/// An error unless the system has so many bytes now: asked before code that allocates them by infallible means, such as
/// that of other crates. Nothing is kept, so it is no promise, but sizes that cannot be had are refused.
pub fn probe(bytes: usize) -> Result<()> {
    // Seen by nobody, the compiler would leave it out.
    room::<u8>(bytes).map(std::hint::black_box).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_are_errors() {
        for n in [usize::MAX, isize::MAX as usize, 1 << 50] {
            assert!(room::<u8>(n).is_err() && filled(0i64, n).is_err() && probe(n).is_err());
            assert!(list((0..n).map(|i| i as i64)).is_err());
        }
    }

    #[test]
    fn lists_are_what_they_are_made_of() {
        assert_eq!(filled(7, 3).unwrap(), [7, 7, 7]);
        assert_eq!(list((0..5).filter(|i| i % 2 == 0)).unwrap(), [0, 2, 4]);
        assert_eq!(copied(&[1, 2]).unwrap(), [1, 2]);
        let failing = (0..3).map(|i| if i < 2 { Ok(i) } else { Err(Error::value("two")) });
        assert_eq!(try_list(failing).unwrap_err().message(), "two");
    }
}
