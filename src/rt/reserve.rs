//! Fallible allocation of host memory whose size the caller of an op controls: too large is an error, not an abort.
//!
//! `vec![x; n]`, `Vec::with_capacity` and `collect` abort the process when the system refuses. Use them only for sizes
//! bounded by a constant or by the number of dimensions or arguments; everything else is allocated here, by `cpu::temp`
//! or as a tensor. `tests/architecture.rs` checks for violations.

use crate::error::{Error, Result};

#[cold]
fn refused<T>(n: usize) -> Error {
    Error::out_of_memory(n.saturating_mul(size_of::<T>()), "cpu")
}

/// An empty `Vec` with capacity for `n`.
pub fn room<T>(n: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(n).map_err(|_| refused::<T>(n))?;
    Ok(all)
}

/// Room for at least one element more; lists that grow so take constant time an element.
pub fn more<T>(all: &mut Vec<T>) -> Result<()> {
    all.try_reserve(1).map_err(|_| refused::<T>(all.len() + 1))
}

/// `n` copies of a value.
pub fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    let mut all = room(n)?;
    all.resize(n, value);
    Ok(all)
}

/// Collects an iterator.
pub fn list<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    try_list(items.into_iter().map(Ok))
}

/// Collects an iterator, up to the first error.
pub fn try_list<T>(items: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut items = items.into_iter();
    let mut all = room(items.size_hint().0)?;
    items.try_for_each(|x| -> Result<()> {
        if all.len() == all.capacity() {
            more(&mut all)?;
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

/// An error if the system cannot provide this many bytes now. Call it before code that allocates them infallibly, such
/// as other crates. Nothing stays reserved, so it is no guarantee, but it rejects impossible sizes.
pub fn probe(bytes: usize) -> Result<()> {
    // Without `black_box` the compiler would remove the allocation.
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
