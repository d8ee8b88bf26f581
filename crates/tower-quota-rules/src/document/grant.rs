use core::fmt;
use core::str::FromStr;
use std::collections::BTreeMap;
use std::sync::Arc;

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
pub type Grants = Arc<BTreeMap<NameText, Grant>>;
