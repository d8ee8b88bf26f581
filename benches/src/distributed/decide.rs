//! The interface of a contender.

use std::pin::Pin;

/// Decides whether the key may go ahead, or returns `None` without a decision.
pub(super) type Decide = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Option<bool>> + Send>>>;
