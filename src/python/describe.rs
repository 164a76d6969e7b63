//! The text of `help()` and `inspect.signature()` for ops, generated from the declarations on demand.
//!
//! Names are PyTorch's: a declaration's `self` is the parameter `input` of a function. A callable with several
//! overloads lists each of them in its doc, and has one text signature with the union of their parameters.

use super::op_callable::Entry;
use rustgrad::op::{Forms, Kind, Op, Returns};
use std::borrow::Cow;

/// Parameter names that are Python keywords, which no call can write: shown with `_`, and positional-only.
const RESERVED: [&str; 3] = ["from", "lambda", "in"];

/// How a callable is accessed, which determines the name of its first parameter and whether it has `out=`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Function,
    Method,
}

/// `add(input, other, *, alpha=1, out=None) -> Tensor`: the signature of a function in Python syntax.
pub fn python_signature(op: &'static Op, name: &str) -> String {
    let out = op.forms.has(Forms::OUT) && !name.ends_with('_');
    signature(op, name, Form::Function, out)
}

fn signature(op: &'static Op, name: &str, form: Form, out: bool) -> String {
    let sig = &op.sig;
    let mut parts = Vec::new();
    for (i, p) in sig.params().iter().enumerate() {
        if i == 0 && form == Form::Method {
            continue;
        }
        if i == sig.positional && p.keyword_only {
            parts.push("*".to_string());
        }
        let name = public(p.name(sig), form);
        parts.push(p.default_text(sig).map_or(name.to_string(), |d| format!("{name}={d}")));
    }
    if out {
        if sig.positional == sig.params().len() {
            parts.push("*".to_string());
        }
        parts.push("out=None".to_string());
    }
    let returns = match &sig.returns {
        Returns::One => "Tensor".to_string(),
        Returns::Named => format!("({})", sig.result_names().collect::<Vec<_>>().join(", ")),
        Returns::Many => "tuple of Tensors".to_string(),
    };
    format!("{name}({}) -> {returns}", parts.join(", "))
}

fn public(name: &'static str, form: Form) -> Cow<'static, str> {
    match name {
        "self" if form == Form::Function => "input".into(),
        name if RESERVED.contains(&name) => format!("{name}_").into(),
        name => name.into(),
    }
}

fn has_out(op: &Op, entry: &Entry) -> bool {
    entry.form == Form::Function && !entry.inplace && op.forms.has(Forms::OUT)
}

/// The doc of a callable: signatures with the same description are listed above it, each once.
pub fn doc(entry: &Entry) -> String {
    let mut blocks: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for op in &entry.ops {
        let text = match entry.form {
            Form::Function => rename_self(op.doc),
            Form::Method => op.doc.to_string(),
        };
        // Overloads that differ only in the type of an argument, or in `out=`, look the same.
        let bare = signature(op, entry.name, entry.form, false);
        let full = signature(op, entry.name, entry.form, has_out(op, entry));
        if let Some((signatures, docs)) = blocks.iter_mut().find(|(s, _)| s.contains(&full) || s.contains(&bare)) {
            if let Some(shorter) = signatures.iter_mut().find(|s| **s == bare) {
                *shorter = full;
            }
            if !docs.contains(&text) {
                docs.push(text);
            }
        } else if let Some((signatures, _)) = blocks.iter_mut().find(|(_, d)| d.contains(&text)) {
            signatures.push(full);
        } else {
            blocks.push((vec![full], vec![text]));
        }
    }
    blocks.into_iter().map(|(s, d)| format!("{}\n\n{}", s.join("\n"), d.join("\n\n"))).collect::<Vec<_>>().join("\n\n")
}

/// Replaces the word `self` by `input`.
fn rename_self(doc: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::with_capacity(doc.len() + 16);
    let mut rest = doc;
    while let Some(at) = rest.find("self") {
        let (before, after) = (&rest[..at], &rest[at + 4..]);
        let whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        out.push_str(before);
        out.push_str(if whole { "input" } else { "self" });
        rest = after;
    }
    out + rest
}

/// Whether PyTorch takes the parameter as variadic positional arguments: sizes of a method or constructor, lists of
/// tensors.
fn takes_rest(op: &'static Op, index: usize, form: Form) -> bool {
    let sig = &op.sig;
    let p = &sig.params()[index];
    match p.kind {
        Kind::TensorArgs => true,
        Kind::Size => index + 1 == sig.positional && (form == Form::Method || index == 0),
        _ => false,
    }
}

/// `($self, other, *, alpha=1)`: one signature that accepts every valid call, positional or by name.
///
/// The overload with the most positional parameters determines the order; names that only others have are keyword-only.
/// A parameter that some overload lacks and that has no default in any is shown as `name=...`.
pub fn text_signature(entry: &Entry) -> String {
    let form = entry.form;
    let rest = |op: &&&'static Op| (0..op.sig.positional).find(|&i| takes_rest(op, i, form));
    let Some(base) = entry.ops.iter().rev().max_by_key(|op| (rest(op).is_some(), op.sig.positional)) else {
        return "()".to_string();
    };
    let collected = rest(&base);
    let positional = base.sig.positional;
    // The first name after which all parameters can be given by name.
    let by_name = base.sig.params()[..positional].iter().rposition(|p| RESERVED.contains(&p.name(&base.sig)));
    let mut parts: Vec<String> = Vec::new();
    let mut optional = false;
    for (i, p) in base.sig.params()[..positional].iter().enumerate() {
        let name = public(p.name(&base.sig), form);
        if i == 0 && form == Form::Method {
            parts.push("$self".to_string());
        } else if collected == Some(i) {
            parts.push(format!("*{name}"));
        } else {
            let default = default_in(entry, p.name(&base.sig), Some(i));
            optional |= default.is_some();
            let shown = default.or(optional.then_some("..."));
            parts.push(shown.map_or(name.to_string(), |d| format!("{name}={d}")));
        }
        if by_name == Some(i) {
            parts.push("/".to_string());
        }
    }
    let keywords = keywords(entry, base, positional);
    if !keywords.is_empty() {
        parts.extend(collected.is_none().then(|| "*".to_string()));
        parts.extend(keywords);
    }
    format!("({})", parts.join(", "))
}

/// The keyword-only parameters: those of `base` after its positional ones, and those that only other overloads have.
fn keywords(entry: &Entry, base: &'static Op, positional: usize) -> Vec<String> {
    let names = |op: &'static Op| op.sig.params().iter().map(|p| p.name(&op.sig));
    let mut found: Vec<&'static str> = names(base).take(positional).collect();
    for name in names(base).chain(entry.ops.iter().flat_map(|op| names(op))) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    let mut parts = Vec::new();
    for parameter in found.split_off(positional) {
        let name = public(parameter, entry.form);
        // What every op that makes tensors takes beside its own arguments: see `memory::accepts`.
        if parameter == "requires_grad" {
            parts.extend(["layout=None".to_string(), "pin_memory=False".to_string()]);
        }
        parts.push(default_in(entry, parameter, None).map_or(name.to_string(), |d| format!("{name}={d}")));
    }
    if entry.ops.iter().any(|op| has_out(op, entry)) {
        parts.push("out=None".to_string());
    }
    parts
}

/// The default that a parameter shows; `None` where each overload requires it, by position at that place.
fn default_in(entry: &Entry, name: &str, position: Option<usize>) -> Option<&'static str> {
    let mut required = true;
    let mut shown = None;
    for op in &entry.ops {
        let sig = &op.sig;
        match sig.index_of(name) {
            Some(i) => {
                shown = shown.or(sig.params()[i].default_text(sig));
                let there = position.map_or(i >= sig.positional, |at| at == i && i < sig.positional);
                required &= there && sig.params()[i].default.is_none();
            }
            None => required = false,
        }
    }
    if required { None } else { shown.or(Some("...")) }
}
