//! Rules of the code base that the compiler does not check: each module of `src/` uses only earlier modules,
//! files and functions stay short, and the crate has at most four macros.
//!
//! 400 lines per file and 60 per function are the guide: longer ones are printed (`--nocapture`), to be split when
//! there is a natural boundary. From 700 and 100 on the test fails. Exceptions are listed below with reasons.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules in order. Those on one line do not use each other.
const MODULES: [&[&str]; 16] = [
    &["chebyshev", "error", "observe", "sync"],
    &["rt"],
    &["dtype"],
    &["layout"],
    &["device"],
    &["kinds"],
    &["cpu", "gpu"],
    &["storage"],
    &["tensor"],
    &["op"],
    &["autograd"],
    &["dispatch"],
    &["ops"],
    &["compile", "transform"],
    &["python"],
    &["lib"],
];

/// Lines of a file and of a function: from where it is printed, and from where the test fails.
const FILE_LINES: (usize, usize) = (400, 700);
const FUNCTION_LINES: (usize, usize) = (60, 100);
const MACROS: usize = 4;

/// Files that may be longer: (path, reason).
const LONG_FILES: &[(&str, &str)] =
    &[("python/rustgrad/_aten_schemas.py", "a table of names, written by tools/aten_schemas.py")];
/// Functions that may be longer: (path, name, reason).
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];
/// Files that import each other: (modules in order, reason).
const CIRCLES: &[(&[&str], &str)] = &[
    (
        &[
            "autograd::engine",
            "autograd::final_callbacks",
            "autograd::foreign_refs",
            "autograd::forward",
            "autograd::history",
            "autograd::hooks",
            "autograd::node",
            "autograd::saved",
            "autograd::saved_args",
        ],
        "a node owns hooks, saved tensors, tangents and edges, which lead to nodes",
    ),
    (
        &["op::body", "op::choice", "op::generator", "op::signature", "op::tracer", "op::value"],
        "an argument's kind, its values and the call that has them define each other",
    ),
    (
        &["ops::activation::piecewise_backward", "ops::activation::smooth", "ops::activation::smooth_backward"],
        "an op and its gradient name each other",
    ),
    (
        &[
            "ops::create::full",
            "ops::create::like",
            "ops::elementwise::ternary",
            "ops::indexing::advanced",
            "ops::indexing::gather_scatter",
            "ops::indexing::index_select",
            "ops::indexing::mask",
            "ops::indexing::scatter_gpu",
            "ops::indexing::scatter_grad",
            "ops::indexing::take",
            "ops::linalg::matmul",
            "ops::linalg::matmul_add",
            "ops::linalg::vector_products",
            "ops::movement::cat",
            "ops::movement::copy",
            "ops::movement::flip_roll",
            "ops::movement::repeat",
            "ops::order::search",
            "ops::order::search_gpu",
            "ops::order::sort",
            "ops::random::bounds",
            "ops::random::distributions",
            "ops::random::sampling",
            "ops::reduce::any_all",
            "ops::reduce::extrema",
            "ops::reduce::scan",
            "ops::reduce::sum_prod",
            "ops::support::batch",
            "ops::support::batch_linalg",
            "ops::support::batch_views",
            "ops::support::grad_helpers",
            "ops::view::alias",
            "ops::view::as_strided",
            "ops::view::reshape",
            "ops::view::shape",
            "ops::view::slice",
            "ops::view::split",
        ],
        "an op names its gradient and its rule for batches, which are written with other ops: reading is undone by writing, summing by expanding, joining by splitting",
    ),
    (
        &["ops::nn::loss::cross_entropy", "ops::nn::loss::nll", "ops::support::batch_nn"],
        "cross_entropy is written with nll_loss; a loss names its rule for batches, which is written with losses",
    ),
    (&["ops::nn::pool::adaptive", "ops::nn::pool::mean"], "both means have one gradient"),
    (&["ops::nn::rnn::fused", "ops::nn::rnn::layer"], "the fused op and the steps that are its oracle"),
    (
        &[
            "python::conversions",
            "python::convert",
            "python::export",
            "python::function",
            "python::graph",
            "python::hooks",
            "python::lent",
            "python::metadata",
            "python::method_call",
            "python::object",
            "python::overrides",
            "python::owned_objects",
            "python::parse",
            "python::properties",
            "python::py_types",
            "python::readings",
            "python::saved",
        ],
        "the tensor object has slots for what returns tensor objects",
    ),
    (&["python::describe", "python::op_callable"], "a callable describes itself"),
];
/// Uses of a later module: (path, module, reason).
const BACK_DOORS: &[(&str, &str, &str)] = &[];

struct Source {
    path: String,
    text: String,
}

/// The source files under `folders` with one of these endings, by path relative to the root.
fn sources(folders: &[&str], endings: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|f| root.join(f)).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else if path.extension().is_some_and(|e| endings.iter().any(|x| e == *x)) {
            let relative = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            found.push(Source { path: relative, text: fs::read_to_string(&path).unwrap() });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn everything(endings: &[&str]) -> Vec<Source> {
    sources(&["src", "python", "shaders", "tests", "benches", "examples", "tools"], endings)
}

fn refuse(problems: Vec<String>, rule: &str) {
    assert!(problems.is_empty(), "{rule}:\n  {}", problems.join("\n  "));
}

fn rank(module: &str) -> Option<usize> {
    MODULES.iter().position(|level| level.contains(&module))
}

/// The code of a file without its comments; only line comments are used.
fn code(text: &str) -> String {
    text.lines().map(|l| l.split_once("//").map_or(l, |(before, _)| before)).collect::<Vec<_>>().join("\n")
}

/// The names that follow `prefix` in paths, including those of a group `prefix{a::b, c}`.
fn named_after(code: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let rest = &code[at + prefix.len()..];
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let mut depth = 0;
        let mut fresh = true;
        for (i, c) in rest.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => fresh = true,
                c if fresh && (c.is_alphanumeric() || c == '_') => {
                    let name: String = rest[i..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    names.push(name);
                    fresh = false;
                }
                _ => {}
            }
            if depth <= 0 && !fresh {
                break;
            }
        }
    }
    names
}

#[test]
fn modules_use_only_modules_before_them() {
    let mut problems = Vec::new();
    for Source { path, text } in sources(&["src"], &["rs"]) {
        let inside = path.trim_start_matches("src/");
        let module = inside.split(['/', '.']).next().unwrap();
        let Some(own) = rank(module) else {
            problems.push(format!("{path}: `{module}` is not in MODULES; give it a place there"));
            continue;
        };
        let code = code(&text);
        let mut used = named_after(&code, "crate::");
        let is_root = inside == format!("{module}.rs") || inside == format!("{module}/mod.rs");
        if is_root {
            used.extend(named_after(&code, "super::"));
        }
        used.sort();
        used.dedup();
        for name in used.iter().filter(|n| *n != module) {
            let excused = BACK_DOORS.iter().any(|(p, r, _)| *p == path && r == name);
            if rank(name).is_some_and(|r| r >= own) && !excused {
                problems.push(format!("{path} uses crate::{name}"));
            }
        }
    }
    refuse(problems, "a module may use only modules before it (error < rt < dtype < layout < device < ...)");
}

/// Whether the code of a file in the module `inside` names the module `of`, by its full path or from its own.
fn names_module(code: &str, inside: &str, of: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let has = |path: &str| code.match_indices(path).any(|(at, _)| ends(&code[at + path.len()..]));
    let near = of.strip_prefix(&format!("{inside}::"));
    let grouped = near.is_some_and(|n| named_after(code, "super::").iter().any(|used| used == n));
    has(&format!("crate::{of}")) || near.is_some_and(|n| has(&format!("super::{n}"))) || grouped
}

/// The circles of imports among the files below a folder: largest sets of files that reach each other, by module path; a
/// folder's `mod.rs` or `lib.rs` only lists and is left out.
fn circles(folder: &str) -> Vec<Vec<String>> {
    let files: Vec<(String, String)> = sources(&[folder], &["rs"])
        .into_iter()
        .filter(|s| !["mod.rs", "lib.rs"].iter().any(|root| s.path.ends_with(root)) && !s.path.contains("/tests/"))
        .map(|s| (s.path["src/".len()..s.path.len() - ".rs".len()].replace('/', "::"), code(&s.text)))
        .collect();
    let n = files.len();
    let uses = |i: usize, j: usize| {
        let inside = files[i].0.rsplit_once("::").map_or("", |(inside, _)| inside);
        i != j && names_module(&files[i].1, inside, &files[j].0)
    };
    let mut reach: Vec<Vec<bool>> = (0..n).map(|i| (0..n).map(|j| uses(i, j)).collect()).collect();
    for k in 0..n {
        let through = reach[k].clone();
        for row in reach.iter_mut().filter(|row| row[k]) {
            row.iter_mut().zip(&through).for_each(|(r, t)| *r |= t);
        }
    }
    let together = |i: usize, j: usize| j == i || reach[i][j] && reach[j][i];
    let circle = |i: usize| (0..n).filter(|&j| together(i, j)).collect::<Vec<_>>();
    let sets = (0..n).map(circle).enumerate().filter(|(i, set)| set.len() > 1 && set[0] == *i);
    sets.map(|(_, set)| set.into_iter().map(|j| files[j].0.clone()).collect()).collect()
}

#[test]
fn circles_of_imports_are_named() {
    let mut problems = Vec::new();
    let found: Vec<Vec<String>> =
        MODULES.iter().copied().flatten().flat_map(|m| circles(&format!("src/{m}"))).collect();
    for circle in &found {
        if !CIRCLES.iter().any(|(named, _)| named == circle) {
            problems.push(format!("{} import each other", circle.join(", ")));
        }
    }
    for (named, _) in CIRCLES {
        if !found.iter().any(|circle| named == circle) {
            problems.push(format!("{} are no circle any more", named.join(", ")));
        }
    }
    refuse(problems, "imports have a direction; a circle stands in CIRCLES with its reason");
}

/// The driver is all that touches wgpu and knows no kernel; kernels know the driver by what its `mod.rs` shows.
#[test]
fn the_gpu_is_a_driver_and_kernels() {
    let mut problems = Vec::new();
    for Source { path, text } in sources(&["src/gpu"], &["rs"]) {
        let code = code(&text);
        let in_driver = path.starts_with("src/gpu/driver/");
        if !in_driver && code.contains("wgpu") {
            problems.push(format!("{path} names wgpu"));
        }
        if in_driver && code.contains("kernels::") {
            problems.push(format!("{path} names a kernel"));
        }
    }
    refuse(problems, "src/gpu: fault < driver < kernels");
}

#[test]
fn files_stay_short() {
    let mut problems = Vec::new();
    for Source { path, text } in everything(&["rs", "py", "wgsl"]) {
        let lines = text.lines().count();
        if lines > FILE_LINES.0 {
            println!("long: {path}: {lines} lines");
        }
        if lines >= FILE_LINES.1 && !LONG_FILES.iter().any(|(p, _)| *p == path) {
            problems.push(format!("{path}: {lines} lines"));
        }
    }
    refuse(problems, "a file has fewer than 700 lines; split it by meaning");
}

/// Rust functions as formatted by rustfmt: the closing brace is aligned with the line that opened the function.
fn rust_functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|w| *w == "fn") else { continue };
        let modifier = |w: &&str| {
            w.starts_with("pub")
                || w.contains('"')
                || ["const", "unsafe", "extern", "async", "super)", "crate)"].contains(w)
        };
        if !words[..at].iter().all(modifier) || at + 1 >= words.len() {
            continue;
        }
        let name = words[at + 1].split(['(', '<']).next().unwrap_or("").to_string();
        let close = format!("{}}}", " ".repeat(indent));
        let one_line = line.ends_with('}') || line.ends_with(';');
        let length =
            if one_line { 1 } else { lines[i..].iter().position(|l| l.starts_with(&close)).map_or(1, |n| n + 1) };
        found.push((name, length));
    }
    found
}

/// Python functions: a definition extends to the last line that is indented deeper than its `def`.
fn python_functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let depth = |l: &str| l.len() - l.trim_start().len();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let head = line.trim_start().trim_start_matches("async ");
        let Some(rest) = head.strip_prefix("def ") else { continue };
        let name = rest.split('(').next().unwrap_or("").to_string();
        let mut end = i;
        for (j, l) in lines.iter().enumerate().skip(i + 1) {
            let closes_signature = depth(l) == depth(line) && l.trim_start().starts_with(')');
            if l.trim().is_empty() {
                continue;
            }
            if depth(l) <= depth(line) && !closes_signature {
                break;
            }
            end = j;
        }
        found.push((name, end - i + 1));
    }
    found
}

#[test]
fn functions_stay_short() {
    let mut problems = Vec::new();
    for Source { path, text } in everything(&["rs", "py"]) {
        let functions = if path.ends_with(".rs") { rust_functions(&text) } else { python_functions(&text) };
        for (name, length) in functions {
            let excused = LONG_FUNCTIONS.iter().any(|(p, n, _)| *p == path && *n == name);
            if length > FUNCTION_LINES.0 {
                println!("long: {path}: {name} has {length} lines");
            }
            if length >= FUNCTION_LINES.1 && !excused {
                problems.push(format!("{path}: {name} has {length} lines"));
            }
        }
    }
    refuse(problems, "a function has fewer than 100 lines; split it by meaning");
}

#[test]
fn macros_are_few() {
    let all: Vec<String> = sources(&["src"], &["rs"])
        .iter()
        .flat_map(|s| vec![s.path.clone(); code(&s.text).matches("macro_rules!").count()])
        .collect();
    assert!(all.len() <= MACROS, "at most {MACROS} macro_rules! in the crate; they are in {all:?}");
}

/// Whether a line creates a list whose length a caller may control: `vec![x; n]`, `Vec::with_capacity(n)`, collected
/// elements or positions.
fn makes_a_list(line: &str) -> bool {
    let constant = |n: &str| n.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || "_ *+-/".contains(c));
    let repeats = line.match_indices("vec![").any(|(at, _)| {
        let inside = &line[at..line.rfind(']').unwrap_or(line.len())];
        let own = !line[..at].ends_with("small");
        own && inside.rsplit_once("; ").is_some_and(|(_, n)| !constant(n.split(']').next().unwrap_or(n)))
    });
    let of_elements = |head: &str| {
        let kinds = ["i64>", "f64>", "c128>", "T>", "E>", "R::", "Layout>", "("];
        line.split_once(head).is_some_and(|(_, kind)| kinds.iter().any(|k| kind.starts_with(k)))
    };
    let collected = of_elements("collect::<Vec<") || of_elements("collect::<Result<Vec<");
    let declared = line.contains("let ") && of_elements(": Vec<") && !line.contains("Vec::new()");
    repeats || collected || declared || line.contains("Vec::with_capacity(")
}

/// See `src/rt/reserve.rs`: memory whose size a caller controls is allocated fallibly. A list that is short for any
/// arguments says so on its line or the one above: `// Bounded by the number of dimensions.`
#[test]
fn memory_that_a_caller_sizes_is_reserved() {
    let mut problems = Vec::new();
    // `over` probes for the memory of decompositions before they run.
    let excused = |path: &str| path.contains("test") || path.starts_with("src/cpu/linalg/");
    for Source { path, text } in sources(&["src/cpu", "src/layout", "src/tensor", "src/dispatch", "src/ops"], &["rs"]) {
        if excused(&path) {
            continue;
        }
        let lines: Vec<&str> = text.split("#[cfg(test)]").next().unwrap().lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let said = |l: &str| l.to_lowercase().contains("bounded");
            if makes_a_list(&code(line)) && !said(line) && !(i > 0 && said(lines[i - 1])) {
                problems.push(format!("{path}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    refuse(problems, "use crate::rt::reserve or cpu::scratch, or say what the list is bounded by");
}

/// Whether a file opens with what it is; generated stubs and empty package markers are not written by hand.
/// Arguments for soundness rest on the interpreter lock, so the module may not opt in to running without it.
#[test]
fn the_module_declares_that_it_needs_the_lock() {
    let modules: Vec<Source> =
        sources(&["src/python"], &["rs"]).into_iter().filter(|s| code(&s.text).contains("#[pymodule")).collect();
    assert!(modules.len() == 1 && code(&modules[0].text).contains("gil_used = true"));
}

#[test]
fn files_say_what_they_are() {
    let mut problems = Vec::new();
    for Source { path, text } in everything(&["rs", "py", "wgsl"]) {
        let first = text.lines().find(|l| !l.trim().is_empty() && !l.starts_with("#!")).unwrap_or("//");
        if !["//", "\"\"\"", "r\"\"\"", "/*", "#"].iter().any(|head| first.starts_with(head)) {
            problems.push(path);
        }
    }
    refuse(problems, "a file starts with what it is and why");
}

#[test]
fn exceptions_are_still_needed() {
    let files = everything(&["rs", "py", "wgsl"]);
    let text = |path: &str| files.iter().find(|s| s.path == path).map(|s| s.text.as_str());
    for (path, reason) in LONG_FILES {
        assert!(text(path).is_some_and(|t| t.lines().count() >= FILE_LINES.1), "{path} is short now ({reason})");
    }
    for (path, name, reason) in LONG_FUNCTIONS {
        let text = text(path).unwrap_or("");
        let functions = if path.ends_with(".rs") { rust_functions(text) } else { python_functions(text) };
        let long = functions.iter().any(|(n, length)| n == name && *length >= FUNCTION_LINES.1);
        assert!(long, "{path}: {name} is short now ({reason})");
    }
    for (path, module, reason) in BACK_DOORS {
        let used = text(path).is_some_and(|t| code(t).contains(&format!("{module}::")));
        assert!(used, "{path} does not use {module} any more ({reason})");
    }
}

#[test]
fn the_checks_see_what_they_should() {
    let code = "use crate::{error::Error, dtype::{DType, Scalar}, tensor};\nlet x = crate::ops::ADD; $crate::gpu";
    assert_eq!(named_after(code, "crate::"), ["error", "dtype", "tensor", "ops", "gpu"]);
    let rust = "impl X {\n    pub(crate) fn long<T>(a: T) {\n        a;\n    }\n    fn one() {}\n}\n";
    assert_eq!(rust_functions(rust), [("long".to_string(), 3), ("one".to_string(), 1)]);
    for line in ["let v = vec![0; n];", "Vec::with_capacity(k)", "x.collect::<Vec<f64>>()", "let v: Vec<T> ="] {
        assert!(makes_a_list(line), "{line}");
    }
    for line in ["vec![0; ROWS]", "smallvec![1; n]", "let v: Vec<T> = Vec::new();", "vec![a, b]", "let d: Vec<usize> ="]
    {
        assert!(!makes_a_list(line), "{line}");
    }
    for used in ["use super::b;", "use super::{a, b};", "let x = super::b::X;", "use crate::m::b::{X, Y};"] {
        assert!(names_module(used, "m", "m::b"), "{used}");
    }
    assert!(!names_module("use super::bc; use crate::m::bc;", "m", "m::b"));
    let python = "def f(\n    a,\n):\n    pass\n\nasync def g(): return 1\n";
    assert_eq!(python_functions(python), [("f".to_string(), 4), ("g".to_string(), 1)]);
}
