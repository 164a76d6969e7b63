//! Enumerated strings among the arguments: compared once, where a call is parsed, and read as a Rust enum.

use super::Op;
use super::body::Call;
use super::value::{Args, Value};
use crate::error::{Error, Result};

/// An enumerated string: its position among those that the signature lists, and the string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub index: u8,
    pub name: &'static str,
}

/// A Rust enum for the strings that a signature lists, in the same order.
pub trait Enumerated: Copy + 'static {
    const VALUES: &'static [(&'static str, Self)];

    fn of(choice: Choice) -> Self {
        let named = |(name, _): &&(&str, Self)| *name == choice.name;
        let at = || Self::VALUES.get(usize::from(choice.index)).filter(named);
        // An op that takes fewer of the values has them at other positions.
        match at().or_else(|| Self::VALUES.iter().find(named)) {
            Some((_, value)) => *value,
            None => panic!("a signature lists '{}', which its enum does not have", choice.name),
        }
    }
}

/// The words of `Op::unknown_choice` for ops that have none of their own.
pub fn unknown_choice(op: &Op, given: &str) -> Error {
    let choices = op.sig.params().iter().find(|p| p.kind == super::Kind::Choice);
    let list: Vec<String> = choices.iter().flat_map(|p| p.choices(&op.sig)).map(|s| format!("'{s}'")).collect();
    let name = choices.map_or("argument", |p| p.name(&op.sig));
    Error::value(format!("expected {name} to be one of {}, got '{given}'", list.join(", ")))
}

impl Op {
    /// The strings of a call from Rust as the choices that they name.
    pub(crate) fn choose(&self, args: &mut Args) {
        for (p, v) in self.sig.params().iter().zip(args.iter_mut()) {
            if let (super::Kind::Choice, Value::Str(given)) = (p.kind, &*v)
                && let Some(chosen) = p.choose(&self.sig, given)
            {
                *v = chosen;
            }
        }
    }
}

impl Call<'_> {
    /// Refuses a string that is none of those that the signature lists.
    pub(crate) fn check_choices(&self) -> Result<()> {
        let unknown = self.op.sig.params().iter().zip(self.args).find_map(|(p, v)| match (p.kind, v) {
            (super::Kind::Choice, Value::Str(given)) => Some(given),
            _ => None,
        });
        unknown.map_or(Ok(()), |given| Err((self.op.unknown_choice)(self.op, given)))
    }
}
