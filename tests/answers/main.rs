//! Tests of responses: the matrix in the documentation, and fields read by an independent parser.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod front_page;
mod matrix;
mod setting;
mod structured_fields;
