//! Explanations of what rules do with a request, and the document's own tests.
//!
//! A request goes through the same policy and the same index as behind a layer: there is no second evaluation.

mod explanation;
mod report;
mod sample;
mod shown_key;

pub use self::explanation::{Explanation, LimitExplanation};
pub use self::report::{TestFailure, TestReport};
pub use self::shown_key::readable_key;
