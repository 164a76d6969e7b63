//! The declarations, one file per family, and `OPS`, the only list.
//!
//! Adding an op: write its literal in the file of its family, add its name to that family's `OPS`. Everything else
//! (function, method, in-place form, `out=`, stub, docs row, tests) is derived. See `docs/adding_an_op.md`.

pub mod activation;
pub mod create;
pub mod elementwise;
pub mod indexing;
pub mod linalg;
pub mod movement;
pub mod nn;
pub mod order;
pub mod random;
pub mod reduce;
pub mod special;
pub mod support;
pub mod view;
pub mod fft;
pub mod masked;
pub mod optim;

use crate::op::Op;
use std::collections::BTreeMap;

/// Every op: folder by folder, file by file.
pub static OPS: &[&[&[&Op]]] = &[
    activation::OPS,
    create::OPS,
    elementwise::OPS,
    fft::OPS,
    indexing::OPS,
    linalg::OPS,
    masked::OPS,
    movement::OPS,
    nn::OPS,
    optim::OPS,
    order::OPS,
    random::OPS,
    reduce::OPS,
    special::OPS,
    support::OPS,
    view::OPS,
];

/// Overloads by public name, aliases included, the most specific first: the order in which a call tries them. It does not
/// depend on that of `ops`.
pub fn overloads(ops: impl Iterator<Item = &'static Op>) -> BTreeMap<&'static str, Vec<&'static Op>> {
    let mut out: BTreeMap<&'static str, Vec<&'static Op>> = BTreeMap::new();
    for op in ops {
        for name in std::iter::once(op.public()).chain(op.aliases.iter().copied()) {
            out.entry(name).or_default().push(op);
        }
    }
    out.values_mut().for_each(|ops| ops.sort_by_cached_key(|op| (op.sig.specificity(), op.name())));
    out
}

/// Every op.
pub fn all() -> impl Iterator<Item = &'static Op> {
    OPS.iter().flat_map(|folder| folder.iter().flat_map(|file| file.iter().copied()))
}
