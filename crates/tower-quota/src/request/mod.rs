//! The state of one request: the rules in force, its context, a place in the queue.

mod case;
mod queue;
mod rules;

pub(crate) use self::case::Case;
pub(crate) use self::queue::{Place, Queue};
pub(crate) use self::rules::Rules;
