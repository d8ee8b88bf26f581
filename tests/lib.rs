//! Tests across tower-quota's crates; the README's snippets are compiled and run here.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
