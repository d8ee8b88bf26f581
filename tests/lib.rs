//! Tests across tower-quota's crates; what the README shows is compiled and run here.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
