//! Holds the state of a request.

mod context;
mod queue;
mod rules;
mod streaks;

pub(crate) use self::context::RequestContext;
pub(crate) use self::queue::{Place, Queue};
pub(crate) use self::rules::Rules;
pub(crate) use self::streaks::Streaks;
