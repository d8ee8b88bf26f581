//! Explains the effect of rules on a request, and runs a document's tests, with the policy of the
//! layer.

mod explanation;
mod listed;
mod report;
mod same_quota;
mod sample;
mod shown_key;
mod source;

pub use self::explanation::{Explanation, LimitExplanation};
pub use self::listed::ListName;
pub use self::report::{TestFailure, TestReport};
pub use self::shown_key::readable_key;
pub use self::source::QuotaSource;
