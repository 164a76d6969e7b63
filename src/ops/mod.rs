//! The declarations, one file per family, and `OPS`, the only list.
//!
//! Adding an op: write its literal in the file of its family, add its name to that family's `OPS`. Everything else
//! (function, method, in-place form, `out=`, stub, docs row, tests) is derived. See `docs/adding_an_op.md`.

pub mod activation;
pub mod activation_backward;
pub mod alias;
pub mod arith;
pub mod assertion;
pub mod attention;
pub mod bessel;
pub mod choose;
pub mod combine;
pub mod compare;
pub mod complex;
pub mod conv;
pub mod coordinates;
pub mod copy;
pub mod counts;
pub mod create;
pub mod difference;
pub mod distance;
pub mod division;
pub mod dropout;
pub mod embed;
pub mod embedding;
pub mod embedding_bag;
pub mod entropy;
pub mod exp;
pub mod fft;
pub mod fillers;
pub mod fold;
pub mod foreach;
pub mod gamma;
pub mod gamma_samples;
pub mod gather;
pub mod hard;
pub mod hard_backward;
pub mod hyperbolic;
pub mod histogram;
mod host;
pub mod image;
pub mod index;
pub mod index_along;
pub mod join;
pub mod kit;
pub mod layer_norm;
pub mod like;
pub mod linalg;
pub mod linear;
pub mod logical;
pub mod loss;
pub mod mask;
pub mod masked;
pub mod minmax;
mod needs;
pub mod norm;
pub mod number;
pub mod number_first;
pub mod optim;
pub mod pad;
pub mod polynomial;
pub mod pool;
pub mod power;
pub mod random;
pub mod random_activation;
mod random_bounds;
pub mod range;
pub mod reduce;
pub mod reorder;
pub mod repeat;
pub mod rnn;
pub mod round;
pub mod rules;
pub mod sample;
pub mod scan;
pub mod scatter_grad;
mod scatter_gpu;
pub mod search;
mod search_gpu;
pub mod select;
pub mod sequence;
pub mod shape;
pub mod signal;
pub mod slice;
pub mod softmax;
pub mod sort;
pub mod special;
pub mod split;
pub mod statistics;
pub mod strided;
pub mod take;
mod through;
pub mod triangle;
pub mod trig;
pub mod unique;
pub mod view;
pub mod view_copy;
pub mod weight_norm;
pub mod window;

use crate::op::Op;
use std::collections::BTreeMap;

/// Every op, family by family.
pub static OPS: &[&[&Op]] = &[
    arith::OPS,
    coordinates::OPS,
    copy::OPS,
    create::OPS,
    view::OPS,
    activation::OPS,
    activation_backward::OPS,
    alias::OPS,
    assertion::OPS,
    attention::OPS,
    attention::fused::OPS,
    bessel::OPS,
    choose::OPS,
    combine::OPS,
    compare::OPS,
    complex::OPS,
    conv::OPS,
    conv::fused::OPS,
    conv::layers::OPS,
    counts::OPS,
    difference::OPS,
    distance::OPS,
    division::OPS,
    dropout::OPS,
    embed::OPS,
    embedding::OPS,
    embedding_bag::OPS,
    entropy::OPS,
    exp::OPS,
    fft::OPS,
    fft::freq::OPS,
    fft::many::OPS,
    fft::one::OPS,
    fillers::OPS,
    fold::OPS,
    foreach::OPS,
    gamma::OPS,
    gamma_samples::OPS,
    gather::OPS,
    hard::OPS,
    hard_backward::OPS,
    histogram::OPS,
    hyperbolic::OPS,
    image::affine::OPS,
    image::grid::OPS,
    image::interpolate::OPS,
    image::shuffle::OPS,
    image::upsample::OPS,
    index::OPS,
    index_along::OPS,
    join::OPS,
    layer_norm::OPS,
    like::OPS,
    linalg::OPS,
    linalg::added::OPS,
    linalg::cholesky::OPS,
    linalg::cross::OPS,
    linalg::derived::OPS,
    linalg::determinant::OPS,
    linalg::eigen::OPS,
    linalg::einsum::OPS,
    linalg::factors::OPS,
    linalg::kit::OPS,
    linalg::ldl::OPS,
    linalg::orthogonal::OPS,
    linalg::powers::OPS,
    linalg::roots::OPS,
    linalg::solve::OPS,
    linalg::spectral::OPS,
    linalg::vectors::OPS,
    linear::OPS,
    logical::OPS,
    loss::bce::OPS,
    loss::chunk::OPS,
    loss::class::OPS,
    loss::ctc::OPS,
    loss::likelihood::OPS,
    loss::margin::OPS,
    loss::metric::OPS,
    loss::multiclass::OPS,
    loss::multilabel::OPS,
    loss::nll::OPS,
    loss::numbered::OPS,
    loss::pointwise::OPS,
    loss::similarity::OPS,
    mask::OPS,
    masked::moments::OPS,
    masked::normalize::OPS,
    masked::reduce::OPS,
    minmax::OPS,
    norm::OPS,
    norm::batch::OPS,
    norm::group::OPS,
    norm::instance::OPS,
    norm::rms::OPS,
    number::OPS,
    number_first::OPS,
    optim::adagrad::OPS,
    optim::adam::OPS,
    optim::sgd::OPS,
    pad::OPS,
    polynomial::OPS,
    pool::adaptive::OPS,
    pool::fractional::OPS,
    pool::max::OPS,
    pool::mean::OPS,
    pool::unpool::OPS,
    power::OPS,
    random::OPS,
    random_activation::OPS,
    range::OPS,
    reduce::OPS,
    reduce::sum_to::OPS,
    reduce::aminmax::OPS,
    reduce::extreme::OPS,
    reduce::median::OPS,
    reduce::mode::OPS,
    reduce::moments::OPS,
    reduce::nan::OPS,
    reduce::norm::OPS,
    reduce::truth::OPS,
    reorder::OPS,
    repeat::OPS,
    rnn::OPS,
    rnn::cells::OPS,
    rnn::fused::OPS,
    rnn::layer::OPS,
    round::OPS,
    sample::OPS,
    scan::OPS,
    scatter_grad::OPS,
    search::OPS,
    select::OPS,
    sequence::OPS,
    shape::OPS,
    signal::OPS,
    slice::OPS,
    softmax::OPS,
    sort::OPS,
    special::OPS,
    split::OPS,
    statistics::OPS,
    strided::OPS,
    take::OPS,
    through::OPS,
    triangle::OPS,
    trig::OPS,
    unique::OPS,
    view_copy::OPS,
    weight_norm::OPS,
    window::OPS,
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
    OPS.iter().flat_map(|family| family.iter().copied())
}
