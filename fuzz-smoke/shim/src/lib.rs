//! Stands for `libfuzzer-sys` where targets are run as plain functions, on a stable toolchain.

/// Makes a function `run` of a target.
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:block) => {
        /// The target with one input.
        pub fn run($input: &[u8]) $body
    };
}
