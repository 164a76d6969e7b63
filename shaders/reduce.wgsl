// Reductions: outputs by the kept dimensions, each folded over the reduced ones, optionally in `splits` chunks whose
// results a second run folds. Long sums are added in blocks or as a tree, so that rounding errors stay small.
{{declarations}}
fn load(o: u32, r: u32) -> T {
    let x = read_x({{x}} + walk_kept(o) + walk_reduced(r));
    {{let_shift}}
    return {{load}};
}
fn combine(a: T, b: T) -> T {
    return {{combine}};
}
fn finish(o: u32, a: T) -> T {
    {{let_shift}}
    return {{finish}};
}
{{body}}
