//! WGSL from templates: `{{name}}` holes, the compute type `T`, and the functions of the prelude that are used.
//!
//! The prelude is written once for all compute types. A line `// @for f32 f64` says for which types the items
//! below it are meant (`all`, `float` and `int` are groups; later items replace earlier ones); within them `T` is the type itself. A kernel gets the
//! items that it names, and those that these name, and nothing else: short sources compile fast and read well.

use crate::chebyshev;
use crate::chebyshev::Series;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// The type that a kernel computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Compute {
    F32,
    F64,
    I32,
    I64,
    /// i32 whose values are truth values: negation is logical.
    Bool,
}

impl Compute {
    pub const ALL: [Compute; 5] = [Compute::F32, Compute::F64, Compute::I32, Compute::I64, Compute::Bool];

    pub const fn name(self) -> &'static str {
        match self {
            Compute::F32 => "f32",
            Compute::F64 => "f64",
            Compute::I32 | Compute::Bool => "i32",
            Compute::I64 => "i64",
        }
    }
    fn in_group(self, group: &str) -> bool {
        match group {
            "all" => true,
            "float" => matches!(self, Compute::F32 | Compute::F64),
            "int" => !matches!(self, Compute::F32 | Compute::F64),
            "bool" => self == Compute::Bool,
            name => name == self.name(),
        }
    }
}

const PRELUDE: [&str; 9] = [
    include_str!("../../../shaders/prelude.wgsl"),
    include_str!("../../../shaders/prelude_compare.wgsl"),
    include_str!("../../../shaders/prelude_f32.wgsl"),
    include_str!("../../../shaders/prelude_f64.wgsl"),
    include_str!("../../../shaders/prelude_special.wgsl"),
    include_str!("../../../shaders/prelude_erf.wgsl"),
    include_str!("../../../shaders/prelude_gamma.wgsl"),
    include_str!("../../../shaders/prelude_bessel.wgsl"),
    include_str!("../../../shaders/prelude_incomplete.wgsl"),
];

/// The items of the prelude by name, one table per compute type.
struct Items {
    of: HashMap<&'static str, &'static str>,
}

fn items(compute: Compute) -> &'static Items {
    static TABLES: OnceLock<[Items; 5]> = OnceLock::new();
    &TABLES.get_or_init(|| Compute::ALL.map(parse))[compute as usize]
}

/// An item starts with `fn`, `const` or `var` in the first column and ends with the next line that is `}` or, for a
/// one-line item, with that line.
fn parse(compute: Compute) -> Items {
    let mut of = HashMap::new();
    for text in PRELUDE {
        let mut wanted = false;
        let mut start = None;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if let Some(groups) = line.strip_prefix("// @for ") {
                wanted = groups.split_whitespace().any(|g| compute.in_group(g));
            }
            let opens = ["fn ", "const ", "var<"].iter().any(|k| line.starts_with(k));
            if opens && start.is_none() {
                start = Some(at);
            }
            at += line.len();
            let closes = line.trim_end() == "}" || (opens && (line.trim_end().ends_with('}') || line.contains(';')));
            if let (Some(from), true) = (start, closes) {
                if wanted {
                    let item = &text[from..at];
                    of.insert(item_name(item), item);
                }
                start = None;
            }
        }
    }
    if compute.in_group("float") {
        of.extend(chebyshev::ALL.iter().map(|&(name, series)| (name, &*sum_of(name, series, compute).leak())));
    }
    Items { of }
}

/// The function that sums a series, by Clenshaw's recurrence; float32 needs no small coefficients.
fn sum_of(name: &str, Series(all): &Series, compute: Compute) -> String {
    let least = if compute == Compute::F32 { 1e-9 } else { 0.0 };
    let kept = all.iter().rposition(|c| c.abs() > least).unwrap_or(0);
    let mut text = format!("fn {name}(t: T) -> T {{\n    var a = T(0);\n    var b = T(0);\n    var c = T(0);\n");
    for c in all[1..=kept].iter().rev() {
        text += &format!("    c = T(2) * t * a - b + T({c:e});\n    b = a;\n    a = c;\n");
    }
    text + &format!("    return t * a - b + T({:e});\n}}\n", all[0])
}

fn item_name(item: &'static str) -> &'static str {
    let rest = item.split_once([' ', '>']).map_or(item, |(_, r)| r.trim_start());
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    &rest[..end]
}

/// Calls `f` on every identifier and on the text between them, in order.
fn scan<'a>(text: &'a str, mut f: impl FnMut(&'a str, bool)) {
    let bytes = text.as_bytes();
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut at = 0;
    while at < bytes.len() {
        let kind = word(bytes[at]);
        let end = bytes[at..].iter().position(|&b| word(b) != kind).map_or(bytes.len(), |n| at + n);
        f(&text[at..end], kind && !bytes[at].is_ascii_digit());
        at = end;
    }
}

/// Replaces the identifier `T` by the compute type's name.
fn typed(text: &str, compute: Compute) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    scan(text, |token, is_name| out.push_str(if is_name && token == "T" { compute.name() } else { token }));
    out
}

/// Fills the holes of `template`.
pub(super) fn fill(template: &str, holes: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((head, tail)) = rest.split_once("{{") {
        let (name, after) = tail.split_once("}}").unwrap_or((tail, ""));
        text.push_str(head);
        text.push_str(holes.iter().find(|(n, _)| *n == name).map_or("", |(_, v)| v));
        rest = after;
    }
    text.push_str(rest);
    text
}

/// Fills the holes of `template`, sets `T`, and appends what is used of the prelude.
pub(super) fn render(template: &str, compute: Compute, holes: &[(&str, &str)]) -> String {
    let mut text = fill(template, holes);
    let items = items(compute);
    let mut seen = HashSet::new();
    let mut queue: Vec<&str> = Vec::new();
    let mut used: Vec<&str> = Vec::new();
    scan(&text, |token, is_name| {
        if is_name && let Some((&name, _)) = items.of.get_key_value(token) {
            queue.push(name);
        }
    });
    while let Some(name) = queue.pop() {
        if !seen.insert(name) {
            continue;
        }
        let item = items.of[name];
        used.push(item);
        scan(item, |token, is_name| {
            if is_name && items.of.contains_key(token) {
                queue.push(token);
            }
        });
    }
    for item in used {
        text.push('\n');
        text.push_str(item);
    }
    typed(&text, compute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_used_items_and_the_type() {
        let text = render("fn main() { let a = relu_(T(1)); {{rest}} }", Compute::F32, &[("rest", "let b = a;")]);
        assert!(text.contains("relu_(f32(1)); let b = a;"), "{text}");
        assert!(text.contains("fn relu_(x: f32)") && !text.contains("fn erf_"), "{text}");
        assert_eq!(text.matches("fn relu_").count(), 1);
    }
}
