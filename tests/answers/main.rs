//! What clients are told, from outside: the matrix in the documentation, and structured fields read by another's parser.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod matrix;
mod setting;
mod structured_fields;
