//! Dimensions among the arguments of a call: dispatch has checked their range before a body or a formula reads them.

use super::body::Call;
use super::gradient::VjpCtx;
use super::value::{Arguments, Key, Value, mismatch};
use crate::error::Result;
use crate::layout::{Dims, wrap_dim, wrap_dims};

/// Reading the arguments whose kind is `Dim`, counted from the front.
pub trait Dimensions: Arguments {
    /// How many dimensions the tensor in argument `i` has; of a list, its first item. `None` where there is no tensor.
    fn rank(&self, i: usize) -> Option<usize>;

    /// How many dimensions there are of which an argument names one; a 0-d tensor counts as having one.
    fn choice_of_dims(&self, key: impl Key) -> usize {
        let sig = &self.op().sig;
        let of = sig.params().get(key.position(sig)).and_then(|p| p.dim_of);
        let of = of.unwrap_or_else(|| mismatch(self.op(), key, "a dimension"));
        (self.rank(of.tensor.into()).unwrap_or(0) + usize::from(of.extra)).max(1)
    }
    fn opt_dim(&self, key: impl Key) -> Option<usize> {
        let i = key.position(&self.op().sig);
        let n = self.choice_of_dims(i);
        self.opt_int(i).map(|d| from_front(d, n))
    }
    fn dim(&self, key: impl Key) -> usize {
        self.opt_dim(key).unwrap_or_else(|| mismatch(self.op(), key, "a dimension"))
    }
    /// A list of dimensions in which one may stand twice.
    fn opt_dims(&self, key: impl Key) -> Option<Dims> {
        let i = key.position(&self.op().sig);
        let n = self.choice_of_dims(i);
        self.opt_ints(i).map(|dims| dims.iter().map(|&d| from_front(d, n)).collect())
    }
    /// A list of dimensions in which none may stand twice. Errors: RuntimeError where one does.
    fn opt_distinct_dims(&self, key: impl Key) -> Result<Option<Dims>> {
        let i = key.position(&self.op().sig);
        let n = self.choice_of_dims(i);
        self.opt_ints(i).map(|dims| wrap_dims(dims, n)).transpose()
    }
    fn distinct_dims(&self, key: impl Key) -> Result<Dims> {
        Ok(self.opt_distinct_dims(key)?.unwrap_or_default())
    }
}

#[inline]
fn from_front(dim: i64, n: usize) -> usize {
    debug_assert!((-(n as i64)..n as i64).contains(&dim), "dispatch checks the range of dimensions");
    (if dim < 0 { dim + n as i64 } else { dim }) as usize
}

impl Dimensions for Call<'_> {
    fn rank(&self, i: usize) -> Option<usize> {
        self.args[i].tensors().next().map(|t| t.ndim())
    }
}

impl Dimensions for VjpCtx<'_> {
    fn rank(&self, i: usize) -> Option<usize> {
        self.metas.iter().find(|(at, _)| *at == i).map(|(_, f)| f.shape.len())
    }
}

impl Call<'_> {
    /// Checks the range of every dimension among the arguments. Errors: IndexError, in PyTorch's words.
    pub(crate) fn check_dims(&self) -> Result<()> {
        for (p, v) in self.op.sig.params().iter().zip(self.args) {
            let Some(of) = p.dim_of else { continue };
            let at = usize::from(of.tensor);
            let n = match (self.rank(at), &self.args[at]) {
                (Some(n), _) => n,
                // The op says what it thinks of a list without tensors.
                (None, Value::Tensors(_)) => continue,
                (None, _) => 0,
            };
            let n = n + usize::from(of.extra);
            match v {
                Value::Scalar(d) => drop(wrap_dim(d.to_i64(), n)?),
                Value::Ints(dims) => dims.iter().try_for_each(|&d| wrap_dim(d, n).map(drop))?,
                _ => {}
            }
        }
        Ok(())
    }
}
