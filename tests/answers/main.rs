//! Tests of responses: the matrix in the documentation, and fields read by an independent parser.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests may panic")]

mod front_page;
mod matrix;
mod setting;
mod structured_fields;
