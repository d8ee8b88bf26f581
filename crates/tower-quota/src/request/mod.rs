//! What belongs to one request on its way, and what it takes along: the rules in force, its case, a place in the queue.

mod case;
mod queue;
mod rules;

pub(crate) use self::case::Case;
pub(crate) use self::queue::{Place, Queue};
pub(crate) use self::rules::Rules;
