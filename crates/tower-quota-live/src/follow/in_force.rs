//! The documents in force on an instance.

use crate::time::Time;
use crate::version::Version;
use tower_quota_rules::Rules;

/// The documents in force on an instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InForce {
    /// The version in force.
    pub version: Version,
    /// Its rules.
    pub rules: Rules,
    /// The shadow document, with its rules.
    pub shadow: Option<(Version, Rules)>,
    /// The instant since which the version is in force on this instance.
    pub since: Time,
    /// True if it was read from the local copy, and the store has not confirmed it yet.
    pub is_local_copy: bool,
}
