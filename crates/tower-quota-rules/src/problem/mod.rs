//! Problems of a document, with their places and fixes.

mod nearest;
mod one;
mod place;
mod problems;
mod render;

pub(crate) use self::nearest::nearest;
pub use self::one::{Problem, Severity};
pub(crate) use self::place::{DocumentPlace, Step};
pub use self::problems::Problems;
