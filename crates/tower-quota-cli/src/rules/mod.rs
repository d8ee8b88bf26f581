//! Runs commands on files of rules.

pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod load;
pub(crate) mod schema;
