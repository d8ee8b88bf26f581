use core::fmt;

use tower_quota::{Key, RequestHead};

use crate::document::{Many, Match};
use crate::rules::Rules;
use crate::text::{KeyPattern, Network};

/// A list of a document that decides before the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListName {
    /// The requests that are admitted without counting.
    Allow,
    /// The requests that are blocked.
    Block,
}

impl Rules {
    /// Returns the position of the first entry of a list that matches a request.
    #[must_use]
    pub fn entry(&self, list: ListName, head: &RequestHead<'_>) -> Option<usize> {
        self.compiled().entry(list, &head.of_sample())
    }

    /// Returns the position of the first entry of a list that names a client by key or network.
    ///
    /// An entry with further conditions, such as a path, names no client.
    #[must_use]
    pub fn entry_of_client(&self, list: ListName, key: &Key<'_>) -> Option<usize> {
        let entries = match list {
            ListName::Allow => &self.document().allow,
            ListName::Block => &self.document().block,
        };
        entries.iter().position(|entry| self.names(entry, key))
    }

    fn names(&self, entry: &Match, key: &Key<'_>) -> bool {
        let rest = Match {
            key: None,
            network: None,
            ..entry.clone()
        };
        match (&entry.key, &entry.network, key.to_address()) {
            _ if !rest.is_empty() => false,
            (Some(Many(patterns)), None, _) => {
                let matches = |pattern: &KeyPattern| pattern.matches(key.as_bytes());
                self.compiled().index.tiers.compares(key) && patterns.iter().any(matches)
            }
            (None, Some(Many(networks)), Some(address)) => {
                let contains = |network: &Network| network.to_net().contains(&address);
                networks.iter().any(contains)
            }
            _ => false,
        }
    }
}

impl fmt::Display for ListName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Block => "block",
        })
    }
}
