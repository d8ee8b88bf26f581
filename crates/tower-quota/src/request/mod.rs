//! The state of one request: the rules in force, its context, a place in the queue.

mod context;
mod queue;
mod rules;

pub(crate) use self::context::RequestContext;
pub(crate) use self::queue::{Place, Queue};
pub(crate) use self::rules::Rules;
