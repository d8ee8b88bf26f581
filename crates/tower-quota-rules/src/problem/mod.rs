//! Problems of a document: what is wrong, where, and how to fix it.

mod nearest;
mod place;
mod problem;
mod problems;
mod render;

pub(crate) use self::nearest::nearest;
pub(crate) use self::place::{Place, Step};
pub use self::problem::{Problem, Severity};
pub use self::problems::Problems;
