//! Tests that the compiler explains common mistakes.

#[test]
#[cfg_attr(
    not(compiler_of_messages),
    ignore = "this compiler phrases messages differently, use rustc 1.95"
)]
fn common_mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("mistakes/*.rs");
}
