//! Signature strings -> parameters, in a `const fn`: a malformed declaration fails the build, and a call parses nothing.
//!
//! `"sum.dim(Tensor self, Dim[1]? dim, bool keepdim=False, *, DType? dtype=None) -> Tensor"`: a name with an optional
//! overload after the last dot-free part, typed parameters with defaults, keyword-only ones after `*`, and the result.
//! `int split_size_or_sections|split_size` has two names: PyTorch's function and method differ, or two overloads are one here.

use super::choice::Choice;
use super::kind::{Choices, DimOf, Kind, Type, parse_type};
use super::scan::{Span, cut, find, find_last, item_end, same_at, trim};
use super::value::Value;
use crate::dtype::Scalar;

/// The largest number of parameters of one op.
pub const MAX_PARAMS: usize = 14;
/// The largest number of named results.
const MAX_RESULTS: usize = 4;

/// A default, in a form that a constant can hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// The first items, and how many there are.
    Ints([i32; 2], u8),
    /// The text, without quotes.
    Str(Span),
    Choice(u8),
    /// No tensors: `Tensors x=[]`.
    Tensors,
}

#[derive(Clone, Copy)]
pub struct Param {
    name: Span,
    also: Span,
    default_text: Span,
    choices: Choices,
    pub kind: Kind,
    /// `None` is accepted (`Tensor?`).
    pub optional: bool,
    pub keyword_only: bool,
    /// The op writes to the tensor, or to the tensors of the list: `Tensor!`.
    pub written: bool,
    /// A tensor by which the op has no derivative, and which may not require grad: `Tensor~`.
    pub fixed: bool,
    /// What a dimension is one of.
    pub dim_of: Option<DimOf>,
    pub default: Option<Default>,
}

/// What an op returns to Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    One,
    /// A named tuple: see `Signature::result_names`. Without names nothing is returned: `-> ()`.
    Named,
    /// A tuple whose length depends on the input (`split`, `unbind`).
    Many,
}

#[derive(Clone, Copy)]
pub struct Signature {
    /// The declaration as written.
    pub text: &'static str,
    name_len: u16,
    /// Digests of the parameters' names, which all differ: what a name among a body's arguments is looked for in.
    digests: [u32; MAX_PARAMS],
    params: [Param; MAX_PARAMS],
    count: u8,
    pub returns: Returns,
    results: [Span; MAX_RESULTS],
    /// How many parameters may be given by position.
    pub positional: usize,
    /// Whether any parameter is a dimension, an enumerated string, or fixed.
    pub has_dims: bool,
    pub has_choices: bool,
    pub has_fixed: bool,
    /// Bits of the parameters that are written to.
    pub written: u32,
}

/// Parses a declaration: `sig: sig("abs(Tensor self) -> Tensor")`.
pub const fn sig(text: &'static str) -> Signature {
    let b = text.as_bytes();
    assert!(b.len() < u16::MAX as usize, "signature: too long");
    let Some(open) = find(b, Span::new(0, b.len()), b'(') else { panic!("signature: no '('") };
    let Some(close) = find_last(b, b") -> ") else { panic!("signature: no ') -> '") };
    let mut s = Signature {
        text,
        name_len: open as u16,
        digests: [0; MAX_PARAMS],
        params: [Param::NONE; MAX_PARAMS],
        count: 0,
        returns: Returns::One,
        results: [Span::EMPTY; MAX_RESULTS],
        positional: 0,
        has_dims: false,
        has_choices: false,
        has_fixed: false,
        written: 0,
    };
    let (mut at, mut keyword_only) = (open + 1, false);
    while at < close {
        let end = item_end(b, at, close);
        let item = trim(b, Span::new(at, end));
        at = end + 1;
        if same_at(b, item, b"*") {
            keyword_only = true;
            continue;
        }
        assert!((s.count as usize) < MAX_PARAMS, "signature: more than MAX_PARAMS parameters");
        let param = Param::parse(b, item, keyword_only);
        let named = digest(b, param.name);
        assert!(s.position_of(named) == MAX_PARAMS, "signature: two names that are alike");
        s.digests[s.count as usize] = named;
        s.params[s.count as usize] = param;
        s.count += 1;
        if !keyword_only {
            s.positional += 1;
        }
    }
    s.note_facts(b);
    s.parse_returns(b, Span::new(close + 5, b.len()));
    s
}

/// A number that tells the names of one signature apart: the length and four letters.
#[inline(always)]
pub(super) const fn digest(b: &[u8], name: Span) -> u32 {
    let (start, end) = (name.start(), name.end());
    let n = end - start;
    if n == 0 {
        return 0;
    }
    let third = if n > 2 { b[start + 2] } else { 0 };
    let last_but_one = if n > 1 { b[end - 2] } else { b[start] };
    u32::from_le_bytes([b[start], third, last_but_one, b[end - 1]]).rotate_left(n as u32 % 32)
}

impl Signature {
    /// Of an op that says nothing yet: what literals take over with `..OP`.
    pub const UNSET: Signature = sig("() -> Tensor");

    /// Finds the tensor that each dimension is one of, and notes which facts there are to check.
    const fn note_facts(&mut self, b: &[u8]) {
        let mut i = 0;
        while i < self.count as usize {
            let p = &mut self.params[i];
            if p.written {
                self.written |= 1 << i;
            }
            self.has_choices |= matches!(p.kind, Kind::Choice);
            self.has_fixed |= p.fixed;
            if let Some(of) = p.dim_of {
                let at = match of.named {
                    Span::EMPTY => self.first_tensor(),
                    name => match self.position(b, cut(b, name)) {
                        Some(at) => at,
                        None => panic!("signature: a dimension of an unknown tensor"),
                    },
                };
                assert!(self.params[at].kind.holds_tensors(), "signature: a dimension of what is no tensor");
                self.params[i].dim_of = Some(DimOf { tensor: at as u8, ..of });
                self.has_dims = true;
            }
            i += 1;
        }
    }
    const fn first_tensor(&self) -> usize {
        let mut i = 0;
        while i < self.count as usize {
            if self.params[i].kind.holds_tensors() {
                return i;
            }
            i += 1;
        }
        panic!("signature: a dimension, and no tensor that has it")
    }
    const fn position(&self, b: &[u8], name: &[u8]) -> Option<usize> {
        let mut i = 0;
        while i < self.count as usize {
            if same_at(b, self.params[i].name, name) {
                return Some(i);
            }
            i += 1;
        }
        None
    }
    const fn parse_returns(&mut self, b: &[u8], r: Span) {
        self.returns = match cut(b, r) {
            b"Tensor" => Returns::One,
            b"Tensor[]" => Returns::Many,
            [b'(', .., b')'] => {
                let (mut at, end, mut n) = (r.start() + 1, r.end() - 1, 0);
                while at < end {
                    let stop = item_end(b, at, end);
                    let item = trim(b, Span::new(at, stop));
                    let Some(space) = find(b, item, b' ') else { panic!("signature: a result without a name") };
                    let kind = Span::new(item.start(), space);
                    assert!(same_at(b, kind, b"Tensor"), "signature: a result that is no Tensor");
                    self.results[n] = Span::new(space + 1, item.end());
                    n += 1;
                    at = stop + 1;
                }
                Returns::Named
            }
            _ => panic!("signature: unknown return type"),
        };
    }

    /// What orders the overloads of a name: kind by kind, those by position first; then what must be given before what may be
    /// left out. Fewer parameters come before more.
    pub fn specificity(&self) -> impl Ord + use<> {
        let part = |params: &[Param]| -> Vec<(u8, bool)> {
            params.iter().map(|p| (p.kind.rank(), p.default.is_some())).collect()
        };
        let (by_position, by_name) = self.params().split_at(self.positional);
        (part(by_position), part(by_name))
    }
    /// The position of a parameter, as a constant: `const LR: usize = STEP.arg("lr");`. A name that is not there does not compile.
    pub const fn arg(&self, name: &str) -> usize {
        match self.position(self.text.as_bytes(), name.as_bytes()) {
            Some(i) => i,
            None => panic!("signature: no parameter of this name"),
        }
    }
    /// The position of the parameter whose name has this digest; `MAX_PARAMS` if there is none.
    #[inline]
    pub(super) const fn position_of(&self, digest: u32) -> usize {
        let mut i = 0;
        while i < MAX_PARAMS && self.digests[i] != digest {
            i += 1;
        }
        i
    }
    /// With the overload: `sum.dim`, `nn.functional.relu`.
    #[inline]
    pub fn name(&self) -> &'static str {
        &self.text[..self.name_len as usize]
    }
    #[inline]
    pub fn params(&self) -> &[Param] {
        &self.params[..self.count as usize]
    }
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.params().iter().position(|p| p.name(self) == name)
    }
    /// The fields of a named tuple; empty for other results.
    pub fn result_names(&self) -> impl Iterator<Item = &'static str> {
        let text = self.text;
        self.results.into_iter().filter(|s| *s != Span::EMPTY).map(move |s| s.of(text))
    }
    /// Whether the op gives no result: `-> ()`.
    pub fn returns_nothing(&self) -> bool {
        self.returns == Returns::Named && self.results[0] == Span::EMPTY
    }
    /// The same with `self` first: the order of a method.
    pub fn method_first(&self) -> Option<Signature> {
        let at = self.index_of("self").filter(|&i| i > 0)?;
        let mut moved = *self;
        moved.params[..=at].rotate_right(1);
        moved.digests[..=at].rotate_right(1);
        Some(moved)
    }
}

impl Param {
    const NONE: Param = Param {
        name: Span::EMPTY,
        also: Span::EMPTY,
        default_text: Span::EMPTY,
        choices: Choices::NONE,
        kind: Kind::Tensor,
        optional: false,
        keyword_only: false,
        written: false,
        fixed: false,
        dim_of: None,
        default: None,
    };

    const fn parse(b: &[u8], text: Span, keyword_only: bool) -> Param {
        let (decl, default_text) = match find(b, text, b'=') {
            Some(i) => (Span::new(text.start(), i), Span::new(i + 1, text.end())),
            None => (text, Span::EMPTY),
        };
        let Some(space) = find(b, decl, b' ') else { panic!("signature: a parameter without a type or a name") };
        let Type { kind, choices, optional, written, fixed, dim_of } = parse_type(b, Span::new(decl.start(), space));
        let name = Span::new(space + 1, decl.end());
        let (name, also) = match find(b, name, b'|') {
            Some(i) => (Span::new(name.start(), i), Span::new(i + 1, name.end())),
            None => (name, Span::EMPTY),
        };
        let default = match default_text {
            Span::EMPTY => None,
            d => Some(parse_default(b, d, kind, choices)),
        };
        Param { name, also, default_text, choices, kind, optional, keyword_only, written, fixed, dim_of, default }
    }
    #[inline]
    pub fn name(&self, sig: &Signature) -> &'static str {
        self.name.of(sig.text)
    }
    /// Another name by which it may be given.
    pub fn also(&self, sig: &Signature) -> Option<&'static str> {
        (self.also != Span::EMPTY).then(|| self.also.of(sig.text))
    }
    /// The default as written, for stubs and docs.
    pub fn default_text(&self, sig: &Signature) -> Option<&'static str> {
        (self.default_text != Span::EMPTY).then(|| self.default_text.of(sig.text))
    }
    /// The values of an enumerated string; none for other kinds.
    pub fn choices(&self, sig: &Signature) -> impl Iterator<Item = &'static str> + use<> {
        self.choices.names(sig.text)
    }
    /// The enumerated string as the value that bodies read.
    pub fn choose(&self, sig: &Signature, given: &str) -> Option<Value<'static>> {
        let (index, name) = self.choices(sig).enumerate().find(|(_, name)| *name == given)?;
        Some(Value::Choice(Choice { index: index as u8, name }))
    }
    /// The default as a value.
    #[inline]
    pub fn default_value(&self, sig: &Signature) -> Option<Value<'static>> {
        Some(match self.default? {
            Default::None => Value::None,
            Default::Bool(b) => Value::Scalar(Scalar::Bool(b)),
            Default::Int(i) => Value::Scalar(Scalar::Int(i)),
            Default::Float(f) => Value::Scalar(Scalar::Float(f)),
            Default::Ints(list, n) => Value::Ints(list[..n as usize].iter().map(|&i| i64::from(i)).collect()),
            Default::Str(s) => Value::Str(s.of(sig.text).into()),
            Default::Choice(index) => {
                let name = self.choices(sig).nth(index as usize).unwrap_or("");
                Value::Choice(Choice { index, name })
            }
            Default::Tensors => Value::Tensors(Vec::new()),
        })
    }
    /// Whether a keyword means this parameter: its own name, or one that NumPy users write for PyTorch's.
    pub fn is_called(&self, sig: &Signature, given: &str) -> bool {
        let name = self.name(sig);
        name == given
            || self.also(sig) == Some(given)
            || match name {
                "self" => matches!(given, "input" | "x" | "a" | "x1"),
                "input" => matches!(given, "self" | "x" | "a" | "x1"),
                "other" => given == "x2",
                "dim" => given == "axis",
                "keepdim" => given == "keepdims",
                _ => false,
            }
    }
    /// The value that None stands for, if any. As in PyTorch, an empty list of dimensions may be passed as None.
    pub fn for_none(&self) -> Option<Value<'static>> {
        match self.default {
            Some(Default::Ints(_, 0)) => Some(Value::Ints(super::Ints::new())),
            Some(Default::None) => Some(Value::None),
            _ => self.optional.then_some(Value::None),
        }
    }
}

const fn parse_default(b: &[u8], text: Span, kind: Kind, choices: Choices) -> Default {
    match cut(b, text) {
        b"None" => Default::None,
        b"True" => Default::Bool(true),
        b"False" => Default::Bool(false),
        [b'\'', .., b'\''] => {
            let inside = Span::new(text.start() + 1, text.end() - 1);
            match kind {
                Kind::Choice => match choices.index_of(b, cut(b, inside)) {
                    Some(i) => Default::Choice(i),
                    None => panic!("signature: the default is none of the values"),
                },
                Kind::Str => Default::Str(inside),
                _ => panic!("signature: a string for what is none"),
            }
        }
        b"[]" if matches!(kind, Kind::TensorArgs) => Default::Tensors,
        [b'[', .., b']'] => {
            let (mut list, mut n) = ([0; 2], 0);
            let (mut at, end) = (text.start() + 1, text.end() - 1);
            while at < end {
                let stop = item_end(b, at, end);
                let Some(i) = super::scan::int(cut(b, trim(b, Span::new(at, stop)))) else {
                    panic!("signature: a default list of what are no ints")
                };
                list[n as usize] = i as i32;
                n += 1;
                at = stop + 1;
            }
            Default::Ints(list, n)
        }
        number => match (super::scan::int(number), kind) {
            (Some(i), Kind::IntOrInts) => Default::Ints([i as i32, 0], 1),
            (Some(i), _) => Default::Int(i),
            _ => match super::scan::float(number) {
                Some(f) => Default::Float(f),
                None => panic!("signature: a default that cannot be read"),
            },
        },
    }
}
