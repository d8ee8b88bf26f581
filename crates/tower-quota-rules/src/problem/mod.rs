//! Problems of a document: what is wrong, where, and how to fix it.

mod nearest;
mod one;
mod place;
mod problems;
mod render;

pub(crate) use self::nearest::nearest;
pub use self::one::{Problem, Severity};
pub(crate) use self::place::{Place, Step};
pub use self::problems::Problems;
