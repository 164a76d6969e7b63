// Running results along lines; with indices, the position of the running extreme goes along.
{{declarations}}
// The later of equals wins, and a NaN once met stays.
fn later_max(a: T, b: T) -> bool {
    return is_nan(b) || (!is_nan(a) && !less(b, a));
}
fn later_min(a: T, b: T) -> bool {
    return is_nan(b) || (!is_nan(a) && !less(a, b));
}
fn combine(a: T, b: T) -> T {
    return {{combine}};
}
fn takes(a: T, b: T) -> bool {
    return {{takes}};
}
fn element(line: u32, i: u32) -> T {
    return read_x({{x}} + walk_x(line) + i * {{x_step}});
}
fn store(line: u32, i: u32, v: T, at: u32) {
    write_out({{out}} + walk_out(line) + i * {{out_step}}, v);
    {{store}}
}
// What precedes a line that goes on from another.
fn begun(line: u32) -> T {
    return {{begun}};
}
{{body}}
