//! Text to a document.
//!
//! 1. A parser of the format builds a [`Tree`]: the nodes of the text with their places, within bounds.
//! 2. [`elements`] reads each element of a list by serde. An error names its node: the node is left out, and the element
//!    is read again. So every error is found.
//!
//! | bound | |
//! |---|---|
//! | bytes | given by the caller |
//! | nesting | 32 |
//! | nodes | 32 million |
//! | regular expressions | 10,000, and 200,000 characters and ranges of all together, with repetitions written out |
//! | anchors, aliases and tags of YAML | none |

mod cursor;
mod elements;
mod error;
mod expressions;
mod json;
mod reading;
mod tree;
mod yaml;

pub(crate) use self::reading::read;
