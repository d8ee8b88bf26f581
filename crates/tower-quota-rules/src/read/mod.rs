//! Reads a document from text.
//!
//! 1. A parser builds a bounded [`Tree`] of nodes with their positions.
//! 2. [`elements`] reads the elements of every list by serde. After an error, the element is read
//!    again without the faulty node, so every error is found.
//!
//! | bound | |
//! |---|---|
//! | bytes | given by the caller |
//! | nesting | 32 |
//! | nodes | 32 million |
//! | regular expressions | 10,000, with 200,000 characters and ranges after expanding repetitions |
//! | YAML anchors, aliases and tags | refused |

mod cursor;
mod elements;
mod error;
mod expressions;
mod reading;
mod tree;
mod yaml;

pub(crate) use self::reading::{Reading, tree};
