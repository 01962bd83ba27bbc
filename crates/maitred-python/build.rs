//! Lets the test programs find the interpreter's library at run time. The extension module needs
//! none of it: there the interpreter is the program.

fn main() {
    if let Some(folder) = &pyo3_build_config::get().lib_dir() {
        println!("cargo:rustc-link-arg-tests=-Wl,-rpath,{folder}");
    }
}
