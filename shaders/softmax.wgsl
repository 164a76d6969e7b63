// Rows along a dimension: a sum of `term` over the row (after its maximum, if wanted), then `result` for each element.
{{declarations}}
fn element(row: u32, i: u32) -> T {
    return read_x({{x}} + walk_x(row) + i * {{x_step}});
}
fn term(row: u32, i: u32, top: T) -> T {
    let x = element(row, i);
    {{let_y}}
    return {{term}};
}
fn result(row: u32, i: u32, top: T, total: T) -> T {
    let x = element(row, i);
    {{let_y}}
    return {{result}};
}
fn store(row: u32, i: u32, v: T) {
    write_out({{out}} + walk_out(row) + i * {{out_step}}, v);
}
{{body}}
