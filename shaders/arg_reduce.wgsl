// Positions of extremes. The earlier position wins a tie, a NaN wins over numbers.
{{declarations}}
// Whether (a, i) comes before (b, j).
fn wins(a: T, i: u32, b: T, j: u32) -> bool {
    let an = is_nan(a);
    let bn = is_nan(b);
    let better = select({{better}}, an, an != bn);
    return select(better, i < j, (an && bn) || same(a, b));
}
fn store(o: u32, top: T, at: u32) {
    write_indices({{indices}} + walk_indices(o), i32(at));
    {{store}}
}
{{body}}
