use core::time::Duration;

use tower_quota::RequestHead;

use crate::cause::Cause;
use crate::priority::Priority;

/// A refused request, for [`ShedLayer::on_shed`](crate::ShedLayer::on_shed).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Shed<'a> {
    /// The head of the request.
    pub head: RequestHead<'a>,
    /// The class of the request.
    pub priority: Priority,
    /// The reason of the refusal, which clients do not learn.
    pub cause: Cause,
    /// The time after which the client may retry.
    pub retry_after: Duration,
}
