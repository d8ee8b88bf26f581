use core::fmt;

use tower_quota::{Key, RequestHead};

use crate::document::Match;
use crate::rules::Rules;

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
            (Some(patterns), None, _) => {
                let mut patterns = patterns.0.iter();
                self.compiled().compares(key)
                    && patterns.any(|pattern| pattern.matches(key.as_bytes()))
            }
            (None, Some(networks), Some(address)) => {
                let mut networks = networks.0.iter();
                networks.any(|network| network.to_net().contains(&address))
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
