//! Tells the crate which version of CPython it is built for: `cfg(Py_3_12)` and the like.

fn main() {
    // Not for every source file; and not for the interpreter's variable, which tests lack: they share the library's build.
    println!("cargo:rerun-if-changed=Cargo.toml");
    #[cfg(feature = "python")]
    pyo3_build_config::use_pyo3_cfgs();
}
