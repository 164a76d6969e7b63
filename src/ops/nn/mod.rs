//! Layers, normalisation and losses of `nn.functional`.

pub mod attention;
pub mod conv;
pub mod distance;
pub mod embedding_bag;
pub mod fold;
pub mod image;
pub mod layer_norm;
pub mod linear;
pub mod loss;
pub mod norm;
pub mod pad_sequence;
pub mod pool;
pub mod rnn;
pub mod softmax;
pub mod weight_norm;

use crate::op::Op;

pub static OPS: &[&[&Op]] = &[
    attention::OPS,
    attention::fused::OPS,
    conv::OPS,
    conv::bytes::OPS,
    conv::fused::OPS,
    conv::layers::OPS,
    distance::OPS,
    distance::pdist::OPS,
    embedding_bag::OPS,
    fold::OPS,
    image::affine::OPS,
    image::grid::OPS,
    image::interpolate::OPS,
    image::shuffle::OPS,
    image::upsample::OPS,
    layer_norm::OPS,
    linear::OPS,
    loss::bce::OPS,
    loss::chunk::OPS,
    loss::cross_entropy::OPS,
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
    norm::OPS,
    norm::batch::OPS,
    norm::group::OPS,
    norm::instance::OPS,
    norm::rms::OPS,
    pad_sequence::OPS,
    pool::adaptive::OPS,
    pool::fractional::OPS,
    pool::max::OPS,
    pool::mean::OPS,
    pool::unpool::OPS,
    rnn::OPS,
    rnn::cells::OPS,
    rnn::fused::OPS,
    rnn::layer::OPS,
    softmax::OPS,
    weight_norm::OPS,
];
