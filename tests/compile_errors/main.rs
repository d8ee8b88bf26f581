//! The compiler explains common mistakes.

use std::process::Command;

/// The compiler that wrote the expected messages. Others phrase them differently.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn common_mistakes_are_explained() {
    let version = Command::new("rustc").arg("--version").output().unwrap();
    if version.stdout.starts_with(COMPILER.as_bytes()) {
        trybuild::TestCases::new().compile_fail("mistakes/*.rs");
    }
}
