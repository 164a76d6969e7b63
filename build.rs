//! Tells the crate which version of CPython it is built for: `cfg(Py_3_12)` and the like.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "python")]
    pyo3_build_config::use_pyo3_cfgs();
}
