//! Tells the test whether the compiler has the version that wrote the expected messages.

use std::process::Command;

/// The compiler that wrote the expected messages.
const COMPILER: &str = "rustc 1.95.";

fn main() {
    println!("cargo:rustc-check-cfg=cfg(compiler_of_messages)");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    if version.is_ok_and(|version| version.stdout.starts_with(COMPILER.as_bytes())) {
        println!("cargo:rustc-cfg=compiler_of_messages");
    }
}
