//! Every error of the crate: variant -> message -> Python exception class.
//!
//! A message has the form `op: problem; expected X, got Y. Hint.`; the part after the op keeps PyTorch's wording where
//! it has one, because programs match on it. `dispatch` prepends the op's name, in one place. `Error` is one pointer
//! wide, so `Result<Tensor>` is returned in registers.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

/// The Python exception class that an error is raised as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Runtime,
    Value,
    Type,
    Index,
    NotImplemented,
    Memory,
    Buffer,
    /// A singular matrix, or a decomposition that does not converge.
    LinAlg,
    /// A panic caught at the boundary to Python: a bug of ours, reported as one.
    Internal,
    /// An exception raised by Python code that Rust called (a hook, a custom function).
    Python,
}

/// The error type. Use the constructors below, so that wording stays in this file or next to the check it belongs to.
pub struct Error(Box<Inner>);

struct Inner {
    class: Class,
    message: String,
    op: Option<Cow<'static, str>>,
    /// The op set the name itself; enclosing calls do not replace it.
    named: bool,
    payload: Option<Box<dyn Any + Send + Sync>>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    #[cold]
    pub fn new(class: Class, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { class, message: message.into(), op: None, named: false, payload: None }))
    }
    #[cold]
    pub fn runtime(message: impl Into<String>) -> Error {
        Error::new(Class::Runtime, message)
    }
    #[cold]
    pub fn value(message: impl Into<String>) -> Error {
        Error::new(Class::Value, message)
    }
    #[cold]
    pub fn type_(message: impl Into<String>) -> Error {
        Error::new(Class::Type, message)
    }
    #[cold]
    pub fn index(message: impl Into<String>) -> Error {
        Error::new(Class::Index, message)
    }
    #[cold]
    pub fn not_implemented(message: impl Into<String>) -> Error {
        Error::new(Class::NotImplemented, message)
    }
    #[cold]
    pub fn linalg(message: impl Into<String>) -> Error {
        Error::new(Class::LinAlg, message)
    }
    #[cold]
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(Class::Internal, message)
    }
    /// Carries a foreign exception (a `PyErr`) through Rust code unchanged.
    #[cold]
    pub fn python(payload: Box<dyn Any + Send + Sync>) -> Error {
        let message = "an exception raised in Python".to_string();
        Error(Box::new(Inner { class: Class::Python, message, op: None, named: false, payload: Some(payload) }))
    }
    #[cold]
    pub fn out_of_memory(bytes: usize, device: &str) -> Error {
        Error::new(
            Class::Runtime,
            format!(
                "[{device}] not enough memory: you tried to allocate {bytes} bytes. Free tensors or use a smaller shape."
            ),
        )
    }
    /// The amount of data to read or write changed between its check and its use.
    #[cold]
    pub fn raced(what: &str) -> Error {
        Error::runtime(format!(
            "{what} was written by another thread while it was read. Let the threads take turns, or pass a copy."
        ))
    }
    /// `dim` outside `[-ndim, ndim)`; PyTorch treats a 0-d tensor as if it had one dimension.
    #[cold]
    pub fn dim_range(dim: i64, ndim: usize) -> Error {
        let n = ndim.max(1) as i64;
        Error::index(format!("Dimension out of range (expected to be in range of [{}, {}], but got {dim})", -n, n - 1))
    }

    pub fn class(&self) -> Class {
        self.0.class
    }
    /// The message without the op's name.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    pub fn take_payload(&mut self) -> Option<Box<dyn Any + Send + Sync>> {
        self.0.payload.take()
    }
    /// Fixes the op's name, where PyTorch's message has one: `linalg.inv`.
    pub fn in_op(mut self, op: impl Into<Cow<'static, str>>) -> Error {
        if !self.0.named {
            (self.0.op, self.0.named) = (Some(op.into()), true);
        }
        self
    }
    /// Names the op whose call failed. The outermost call wins, because that is the one the user made (`linear`, not
    /// `addmm`).
    #[cold]
    pub fn in_call(mut self, op: impl Into<Cow<'static, str>>) -> Error {
        if !self.0.named {
            self.0.op = Some(op.into());
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A step of a public op (`_silu`) goes by that op's name.
        if let Some(op) = self.0.op.as_deref().map(|op| op.trim_start_matches('_'))
            && !starts_with_name(&self.0.message, op)
        {
            write!(f, "{op}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

/// Whether a message begins with the op's name, as many of PyTorch's do: in full, after `torch.`, without the namespace
/// (`multi_dot():` from `linalg.multi_dot`), or the name of the form that is not in place.
fn starts_with_name(message: &str, op: &str) -> bool {
    let message = message.strip_prefix("torch.").unwrap_or(message);
    let stem = op.rsplit('.').next().unwrap_or(op).trim_end_matches('_');
    let ends = |rest: &str| !rest.trim_start_matches('_').starts_with(char::is_alphanumeric);
    [op, stem].iter().any(|name| message.strip_prefix(name).is_some_and(ends))
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.0.class)
    }
}
impl std::error::Error for Error {}

/// Formats a shape as PyTorch's messages do: `[2, 3]`.
pub struct Show<'a, T>(pub &'a [T]);
impl<T: fmt::Display> fmt::Display for Show<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, v) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{v}")?;
        }
        f.write_str("]")
    }
}
