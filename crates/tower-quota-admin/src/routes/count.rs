use serde::Deserialize;

use crate::problem::{Problem, Result};

#[derive(Deserialize)]
pub(crate) struct CountQuery {
    count: Option<usize>,
}

impl CountQuery {
    pub(super) fn or(self, default: usize) -> Result<usize> {
        count(self.count, default, 1_000)
    }
}

/// Returns the number of entries to list, from 1 to `most`.
pub(super) fn count(sent: Option<usize>, default: usize, most: usize) -> Result<usize> {
    match sent {
        None => Ok(default),
        Some(count) if (1..=most).contains(&count) => Ok(count),
        Some(count) => Err(Problem::invalid(format_args!(
            "count={count} is out of range: list 1 to {most}"
        ))),
    }
}
