//! What a node saves of its call: arguments and results that its formula reads, and metadata of the others.

use super::saved::Saved;
use crate::dtype::Scalar;
use crate::error::{Error, Result, Show};
use crate::op::gradient::TensorMeta;
use crate::op::signature::Default;
use crate::op::{OUT0, Param, Value};
use crate::rt::emplace;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// What an op's formula reads, and no more: a call on small tensors costs about as much as its node.
#[derive(Clone, std::default::Default)]
pub struct Kept {
    /// Non-tensor arguments, by position; those equal to the signature's default, or `None`, are omitted.
    pub plain: SmallVec<[(u32, Value<'static>); 1]>,
    /// Saved tensors, with their `Place`.
    pub tensors: SmallVec<[(Place, Saved); 2]>,
    /// Tensor arguments with the same metadata as the first output, one bit per position.
    pub(crate) like_output: u32,
    /// Metadata of the other tensor arguments, by position (list items consecutively).
    pub(crate) metas: Vec<(u32, TensorMeta)>,
}

/// The argument or result that a saved tensor is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Input(u32),
    /// An item of a list argument: position and item.
    Item(u32, u32),
    Output(u32),
}

/// Whether it equals the parameter's default number, or `None`.
#[inline]
fn is_default(p: &Param, v: &Value) -> bool {
    match (v, p.default) {
        (Value::None, None | Some(Default::None)) => true,
        (Value::Scalar(Scalar::Float(a)), Some(Default::Float(b))) => a.to_bits() == b.to_bits(),
        (Value::Scalar(Scalar::Int(a)), Some(Default::Int(b))) => *a == b,
        (Value::Scalar(Scalar::Bool(a)), Some(Default::Bool(b))) => *a == b,
        (Value::Choice(a), Some(Default::Choice(b))) => a.index == b,
        _ => false,
    }
}

/// `None` after it was freed.
pub type State = Option<Kept>;

impl Kept {
    pub(crate) fn outputs(&mut self, saves: u32, outputs: &[Tensor]) -> Result<()> {
        for (i, t) in outputs.iter().enumerate().filter(|(i, _)| saves & (OUT0 << i.min(&15)) != 0) {
            self.tensors.push((Place::Output(i as u32), Saved::output(t, i)?));
        }
        Ok(())
    }
    /// Saves argument `i`, of parameter `p`.
    #[inline]
    pub(crate) fn argument(
        &mut self,
        (i, p): (u32, &Param),
        v: &Value,
        read: bool,
        like: Option<&TensorMeta>,
    ) -> Result<()> {
        match v {
            v if is_default(p, v) => {}
            Value::Tensor(_) | Value::Owned(_) => {
                let Some(t) = v.as_tensor() else { return Ok(()) };
                match like {
                    Some(f) if f.fit(t) && i < 32 => self.like_output |= 1 << i,
                    _ => self.metas.push((i, TensorMeta::of(t))),
                }
                if read {
                    self.tensors.push((Place::Input(i), Saved::input(t)?));
                }
            }
            Value::Scalar(s) => emplace::push(&mut self.plain, || (i, Value::Scalar(*s))),
            Value::Tensors(list) => self.list(i, list, read)?,
            other => self.plain.push((i, other.clone().into_owned())),
        }
        Ok(())
    }
    #[inline(never)]
    fn list(&mut self, i: u32, list: &[Option<Tensor>], read: bool) -> Result<()> {
        for (k, t) in list.iter().enumerate().filter_map(|(k, t)| Some((k, t.as_ref()?))) {
            self.metas.push((i, TensorMeta::of(t)));
            if read {
                self.tensors.push((Place::Item(i, k as u32), Saved::input(t)?));
            }
        }
        self.plain.push((i, Value::Tensors(Vec::new())));
        Ok(())
    }
}

/// Formulas use the shapes at the time of the forward call.
#[cold]
pub(crate) fn reshaped(t: &Tensor, saved: &[usize]) -> Error {
    Error::runtime(format!(
        "one of the variables needed for gradient computation has another shape than when it was saved: {}; expected {}. \
         Its .data was replaced in between, or a hook unpacked another tensor. Clone it before the operation.",
        Show(t.shape()),
        Show(saved)
    ))
}
