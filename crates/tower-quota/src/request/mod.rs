//! Holds the state of a request.

mod context;
mod observed;
mod queue;
mod report;
mod response_context;
mod rules;
mod streaks;

pub(crate) use self::context::RequestContext;
pub(crate) use self::observed::Observed;
pub(crate) use self::queue::{Queue, Waiter, WaitingPlace};
pub(crate) use self::report::RequestReport;
pub(crate) use self::response_context::ResponseContext;
pub(crate) use self::rules::Rules;
