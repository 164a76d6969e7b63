//! Plans as files: a recorded call written as text and tensors, read back and run without the code that it came from.
//!
//! A file is a safetensors file. Its metadata hold the text of the plan (JSON): the inputs, the tensors from outside, and
//! the steps by the names of ops and of their arguments. Nothing in it is code, and everything in it is checked before it
//! is used (`docs/compile.md`).

mod container;
mod decode;
mod encode;
mod json;
mod program;

pub use self::decode::Input;
pub use self::encode::Naming;
pub use self::program::{Program, SaveError, load, load_on, save};
