use core::fmt;
use core::str::FromStr;
use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tower_quota::Quota;

use crate::text::{NameText, QuotaText, TextError, written_as_text};

/// The quota of a limit for a tier or an override, or `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grant {
    /// The limit does not apply.
    Unlimited,
    /// Replaces the limit's own quota.
    Quota(QuotaText),
}

impl Grant {
    /// Returns the quota, unless it is unlimited.
    #[must_use]
    pub const fn quota(&self) -> Option<&Quota> {
        match self {
            Self::Unlimited => None,
            Self::Quota(text) => Some(text.quota()),
        }
    }
}

impl FromStr for Grant {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        if text.trim() == "unlimited" {
            Ok(Self::Unlimited)
        } else {
            text.parse().map(Self::Quota)
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Quota(quota) => quota.fmt(f),
        }
    }
}

written_as_text!(Grant, "a quota such as \"100/minute\", or \"unlimited\"", {
    "pattern": "^\\s*(unlimited|[0-9][0-9_]*\\s*((/|[pP][eE][rR] )\\s*([0-9][0-9_]*\\s*)?[a-zA-Zµ]+|[aA][tT]\\s+[oO][nN][cC][eE])(\\s+[a-zA-Z0-9_µ/+-]+)*)\\s*$",
    "examples": ["1000/minute", "unlimited"]
});

/// Quotas by the name of the limit. Clones are cheap, and equal overrides share memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Grants(Arc<BTreeMap<NameText, Grant>>);

impl Grants {
    /// Returns the quota of a limit, if any.
    #[must_use]
    pub fn get(&self, limit: &str) -> Option<&Grant> {
        self.0.get(limit)
    }

    /// Returns the limits and their quotas.
    pub fn iter(&self) -> btree_map::Iter<'_, NameText, Grant> {
        self.0.iter()
    }

    /// Returns whether there are no quotas.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(NameText, Grant)> for Grants {
    fn from_iter<I: IntoIterator<Item = (NameText, Grant)>>(grants: I) -> Self {
        Self(Arc::new(grants.into_iter().collect()))
    }
}

impl<'a> IntoIterator for &'a Grants {
    type Item = (&'a NameText, &'a Grant);
    type IntoIter = btree_map::Iter<'a, NameText, Grant>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
