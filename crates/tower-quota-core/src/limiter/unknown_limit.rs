//! The error of naming a limit that a limiter does not have.

use core::fmt;

use crate::name::Name;

/// A limit's name that the limiter does not have. The message names those it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLimit {
    pub(super) name: String,
    pub(super) known: Vec<Name>,
}

impl UnknownLimit {
    /// Returns the name that was asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names that the limiter has.
    #[must_use]
    pub fn known(&self) -> &[Name] {
        &self.known
    }
}

impl fmt::Display for UnknownLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the limiter has no limit {:?}: it has {:?}",
            self.name, self.known
        )
    }
}

impl core::error::Error for UnknownLimit {}
