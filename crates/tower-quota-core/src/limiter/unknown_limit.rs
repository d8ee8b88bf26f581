//! The error of an unknown limit name.

use core::fmt;

use crate::name::Name;

/// The limiter has no limit with this name. The message lists the known names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLimit {
    pub(super) name: String,
    pub(super) known: Vec<Name>,
}

impl UnknownLimit {
    /// Returns the unknown name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the limiter's limits.
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
