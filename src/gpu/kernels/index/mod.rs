//! Reading and writing through index tensors: gather, scatter, selection, advanced indexing, masks.
//!
//! Indices may be int64, int32 or narrower. They are checked on the device: a bad one reads or writes nothing and
//! leaves its value in the fault block, which comes back as an error when the host next waits (a read, or
//! `synchronize`). Elements that are only moved travel as words, so every dtype can be indexed.

mod advanced;
mod checks;
mod gather;
mod mask;
mod scatter;
pub(super) mod words;

pub use self::advanced::{index_get, index_put};
pub use self::checks::refuse_where;
pub use self::gather::{gather, index_select, pick_class};
pub use self::mask::{Places, masked_scatter, masked_select, nonzero};
pub use self::scatter::{index_add, index_copy, index_fill, put_class, scatter};
