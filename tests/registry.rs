//! Completeness of the op table: every row has what `docs`, stubs and tests are derived from.
//!
//! `tests/test_ops.py` checks what a row computes; this file, without an interpreter, what it declares.

use rustgrad::op::{Body, Decompose, Forms, Op, Vjp, public_name};
use rustgrad::ops::{all, overloads};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Fails with a list of all ops for which `problem` returns a message.
fn every_row(problem: impl Fn(&'static Op) -> Option<String>) {
    let found: Vec<String> = all().filter_map(|op| problem(op).map(|p| format!("  {}: {p}", op.name()))).collect();
    assert!(found.is_empty(), "{} rows are incomplete:\n{}", found.len(), found.join("\n"));
}

fn first_sentence(doc: &str) -> &str {
    doc.split("\n\n").next().unwrap_or("").trim()
}

#[test]
fn every_row_has_a_document() {
    every_row(|op| {
        let first = first_sentence(op.doc);
        (first.len() < 10 || !first.ends_with(['.', ':', ')', '`'])).then(|| format!("doc {first:?} is no sentence"))
    });
}

#[test]
fn every_row_has_samples_and_an_error_sample() {
    every_row(|op| match (op.samples.is_empty(), op.errors.is_empty()) {
        (true, _) => Some("no sample".into()),
        (_, true) => Some("no error sample".into()),
        _ => op.errors.iter().find(|(_, class, part)| class.is_empty() || part.is_empty()).map(|e| format!("{e:?}")),
    });
}

#[test]
fn every_row_has_a_gradient_or_says_why_not() {
    every_row(|op| match (&op.vjp, &op.body) {
        (_, Body::Unset) => Some("no body".into()),
        (Vjp::Unset, _) => Some("neither a gradient nor a reason".into()),
        (Vjp::None(reason), _) if reason.len() < 5 => Some(format!("{reason:?} is no reason")),
        (Vjp::Composite, Body::Decompose(_) | Body::Opaque(_)) => None,
        (Vjp::Composite, _) => Some("says composite, but its body is a primitive".into()),
        (Vjp::Each([]), _) => Some("an empty list of gradients".into()),
        (Vjp::Each(list), _) => {
            let count = op.sig.params().len();
            list.iter().find(|g| g.arg >= count).map(|g| format!("a gradient of argument {} of {count}", g.arg))
        }
        _ => None,
    });
}

/// The functions of `src/ops` by name: `fn name(..) {..}` up to the brace in the first column that closes it.
fn functions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n")
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len() + 1;
            Some((start, line))
        })
        .filter_map(|(start, line)| {
            let name = line.split_once("fn ")?.1.split(['(', '<']).next()?;
            let end = text[start..].find("\n}").map_or(text.len(), |e| start + e);
            (!line.starts_with(' ')).then(|| (name, &text[start..end]))
        })
}

/// A text from its start up to the parenthesis that closes its first one.
fn parenthesised(text: &str) -> &str {
    let mut depth = 0;
    let end = text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ')' && depth == 0
    });
    &text[..end.unwrap_or(text.len())]
}

#[test]
fn every_row_is_primitive_or_decomposes() {
    every_row(|op| match &op.body {
        Body::Unset => Some("no body".into()),
        Body::Decompose(d) if op.is_primitive() || op.reads_host() || d.fused.is_some_and(|f| !f.is_primitive()) => {
            Some("a decomposing op is no primitive, and what it is fused to is one".into())
        }
        Body::Decompose(_) => None,
        Body::Opaque(o) if o.infer.is_some() && matches!(op.vjp, Vjp::Composite) => {
            Some("without memory its steps do not run, so their gradient is not recorded".into())
        }
        _ if !op.is_primitive() => Some("neither primitive nor decomposing".into()),
        _ => None,
    });
}

/// What a recording of its samples proves of each decomposing body (`decomposes` in tests/test_ops.py) can be read off
/// most of them, without an interpreter: no word of raw memory or of the host in the closure itself.
#[test]
fn no_decomposing_body_names_raw_memory() {
    const RAW: [&str; 11] = [
        "Tensor::empty",
        "Tensor::zeros",
        "Tensor::scalar",
        "Tensor::from_slice",
        "of_layout",
        "copy_raw",
        "fill_raw",
        "cpu_view",
        "gpu_view",
        "item(",
        "int_list(",
    ];
    let mut found = Vec::new();
    let mut bodies = 0;
    for (path, text) in op_files() {
        for (at, _) in text.match_indices("body: decompose") {
            let body = parenthesised(&text[at..]);
            bodies += 1;
            let named =
                body.split_once("decompose(").map_or("", |(_, rest)| rest.split([')', ',']).next().unwrap_or(""));
            let called = functions(&text).find(|(name, _)| *name == named).map_or("", |(_, code)| code);
            found.extend(
                RAW.iter()
                    .filter(|w| body.contains(**w) || called.contains(**w))
                    .map(|w| format!("{w} in {path}: {body}")),
            );
        }
    }
    assert!(bodies > 150, "{bodies} bodies are found");
    assert!(found.is_empty(), "decomposing bodies touch memory:\n{}", found.join("\n"));
}

#[test]
fn every_row_has_a_fitting_name() {
    every_row(|op| {
        let leaf = op.public().rsplit('.').next().unwrap_or("");
        let (hidden, writes) = (op.forms.has(Forms::HIDDEN), op.forms.has(Forms::ONLY_INPLACE));
        if hidden {
            return None;
        }
        if leaf.starts_with('_') {
            return Some("only a hidden op starts with an underscore".into());
        }
        if writes != leaf.ends_with('_') {
            return Some("an op that only writes to self, and no other, ends with an underscore".into());
        }
        (op.forms.has(Forms::OUT) && op.sig.index_of("out").is_some())
            .then(|| "`out` is derived, not a parameter".into())
    });
}

#[test]
fn every_parameter_is_found_by_its_name() {
    use rustgrad::op::Key;
    every_row(|op| {
        let mut names = op.sig.params().iter().map(|p| p.name(&op.sig)).enumerate();
        names.find(|(i, name)| name.position(&op.sig) != *i).map(|(_, name)| format!("'{name}' is found elsewhere"))
    });
}

#[test]
fn a_deprecated_order_has_the_parameters_of_its_op() {
    every_row(|op| {
        let mut old = op.deprecated.iter().flat_map(|s| s.params().iter().map(|p| p.name(s)));
        old.find(|name| op.sig.index_of(name).is_none()).map(|name| format!("a deprecated signature with '{name}'"))
    });
}

/// A permutation of the ops that does not change from run to run (Fisher and Yates, over a linear congruential generator).
fn shuffled(seed: u64) -> Vec<&'static Op> {
    let (mut ops, mut state): (Vec<_>, u64) = (all().collect(), seed);
    for i in (1..ops.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ops.swap(i, (state >> 33) as usize % (i + 1));
    }
    ops
}

#[test]
fn overloads_are_tried_in_an_order_that_no_list_decides() {
    let names = |ops: Vec<&'static Op>| -> BTreeMap<&str, Vec<&str>> {
        let found = overloads(ops.into_iter()).into_iter();
        found.map(|(name, ops)| (name, ops.iter().map(|op| op.name()).collect())).collect()
    };
    let expected = names(all().collect());
    for seed in 1..=20 {
        assert_eq!(names(shuffled(seed)), expected, "seed {seed}");
    }
    // Nor do names decide: two overloads that a call could not tell apart by their kinds would be an accident.
    for (name, ops) in overloads(all()) {
        let alike = ops.windows(2).find(|p| p[0].sig.specificity() == p[1].sig.specificity());
        assert!(alike.is_none(), "{name}: two overloads have the same kinds, so that only their names order them");
    }
}

#[test]
fn overloads_put_tensors_before_numbers_and_few_parameters_before_many() {
    let table = overloads(all());
    let order = |name: &str| table[name].iter().map(|op| op.name()).collect::<Vec<_>>();
    assert_eq!(order("pow"), ["pow.tensor", "pow", "pow.scalar"]);
    assert_eq!(order("max"), ["max", "max.other", "max.dim"]);
    assert_eq!(order("arange"), ["arange", "arange.start", "arange.start_step"]);
    assert_eq!(order("var"), ["var", "var.dim", "var.correction"]);
    assert_eq!(order("unique"), ["unique", "unique.counts", "unique.inverse", "unique.inverse_counts"]);
    assert_eq!(order("randint"), ["randint", "randint.low"]);
}

/// The values of an enumerated string, parameter by parameter.
fn choices(op: &'static Op) -> Vec<Vec<&'static str>> {
    op.sig.params().iter().map(|p| p.choices(&op.sig).collect()).collect()
}

#[test]
fn every_default_is_read_as_it_is_written() {
    use rustgrad::dtype::Scalar;
    use rustgrad::op::Value;
    every_row(|op| {
        op.sig.params().iter().find_map(|p| {
            let (text, value) = (p.default_text(&op.sig)?, p.default_value(&op.sig)?);
            let right = match &value {
                Value::None => text == "None",
                Value::Scalar(Scalar::Bool(b)) => text == if *b { "True" } else { "False" },
                Value::Scalar(Scalar::Int(i)) => text.parse() == Ok(*i),
                Value::Scalar(Scalar::Float(f)) => text.parse::<f64>().is_ok_and(|t| t.to_bits() == f.to_bits()),
                Value::Ints(list) => format!("{:?}", list.as_slice()) == text || format!("{:?}", list[0]) == text,
                Value::Str(s) => text == format!("'{s}'"),
                Value::Choice(c) => text == format!("'{}'", c.name) && choices(op).iter().any(|v| v.contains(&c.name)),
                Value::Tensors(list) => list.is_empty() && text == "[]",
                _ => false,
            };
            (!right).then(|| format!("the default {text} of {}", p.name(&op.sig)))
        })
    });
}

#[test]
fn a_fused_op_takes_the_arguments_of_its_composite() {
    every_row(|op| {
        let Body::Decompose(Decompose { fused: Some(fused), .. }) = &op.body else { return None };
        let kinds = |op: &'static Op| op.sig.params().iter().map(|p| p.kind).collect::<Vec<_>>();
        (kinds(op) != kinds(fused) || choices(op) != choices(fused)).then(|| format!("{} differs", fused.name()))
    });
}

#[test]
fn an_op_that_only_writes_says_so_in_its_signature() {
    every_row(|op| {
        let (only, says) = (op.forms.has(Forms::ONLY_INPLACE), op.sig.written & 1 != 0);
        // An op that writes to lists gives no result, so it has no form that returns one.
        (only != says && !op.sig.returns_nothing()).then(|| "`Tensor!` and the in-place form disagree".into())
    });
}

#[test]
fn no_name_is_given_twice() {
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for op in all() {
        owners.entry(op.name()).or_default().push(op.name());
        for alias in op.aliases {
            // An alias may serve several overloads of one op, never two ops.
            let owned = owners.entry(alias).or_default();
            if !owned.iter().any(|o| public_name(o) == op.public()) {
                owned.push(op.name());
            }
        }
    }
    owners.retain(|_, ops| ops.len() > 1);
    assert!(owners.is_empty(), "names of several ops: {owners:?}");
}

/// `pub static X: Op` in `text`.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|l| l.trim().strip_prefix("pub static ")?.split_once(": Op =").map(|(name, _)| name))
}

/// The files of `src/ops`: path and text.
fn op_files() -> Vec<(String, String)> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops")];
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
            continue;
        }
        files.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
    }
    files
}

#[test]
fn every_literal_is_in_a_list() {
    let (mut count, mut lost) = (0, Vec::new());
    for (path, text) in op_files() {
        for name in literals(&text) {
            count += 1;
            if !text.contains(&format!("&{name}")) {
                lost.push(format!("{name} in {path}"));
            }
        }
    }
    assert!(lost.is_empty(), "literals in no list: {lost:?}");
    assert_eq!(count, all().count(), "as many literals as rows");
}
