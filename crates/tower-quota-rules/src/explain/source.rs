use core::fmt;

use serde::{Serialize, Serializer};
use tower_quota::Key;

use crate::rules::Rules;

/// What gives a client its quota of a limit, as text `limit`, `tier NAME`, `override`,
/// `override by AUTHOR until TIME` or `service`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaSource {
    /// The limit itself.
    Limit,
    /// The tier of the client.
    Tier(String),
    /// The document's override of the client.
    Override,
    /// An override of an operator.
    Operator {
        /// The author.
        author: String,
        /// The end.
        until: String,
    },
    /// The code of the service.
    Service,
}

impl Rules {
    /// Returns what gives a client its quota of a limit, without a [tier](crate::Tier) from your code.
    #[must_use]
    pub fn quota_source_by_key(&self, limit: &str, key: &Key<'_>) -> QuotaSource {
        let index = &self.compiled().index;
        match index.positions.get(limit) {
            Some(position) => index.tiers.of_key(key).source(*position),
            None => QuotaSource::Limit,
        }
    }
}

impl fmt::Display for QuotaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit => f.write_str("limit"),
            Self::Tier(name) => write!(f, "tier {name}"),
            Self::Override => f.write_str("override"),
            Self::Operator { author, until } => write!(f, "override by {author} until {until}"),
            Self::Service => f.write_str("service"),
        }
    }
}

impl Serialize for QuotaSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
