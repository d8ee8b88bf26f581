use tower_quota_rules::Rules;

use crate::time::Time;
use crate::version::Version;

/// The document in force on an instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InForce {
    /// The version in force.
    pub version: Version,
    /// The rules of the version.
    pub rules: Rules,
    /// The time since when this instance uses the version.
    pub since: Time,
    /// True if the version comes from the local copy, unconfirmed by the store.
    pub is_local_copy: bool,
}
