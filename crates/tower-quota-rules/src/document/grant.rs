//! Quotas of a tier or a single key.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use tower_quota::Quota;

use crate::text::{NameText, QuotaText, TextError, written_as_text};

/// The quota of a limit for a tier or a single key, or `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grant {
    /// The limit does not apply.
    Unlimited,
    /// This quota instead of the limit's own.
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
    "pattern": "^\\s*(unlimited|[0-9][0-9_]*\\s*(/|[pP][eE][rR] )\\s*([0-9][0-9_]*\\s*)?[a-zA-Zµ]+(\\s+[a-zA-Z0-9_µ]+)*)\\s*$",
    "examples": ["1000/minute", "unlimited"]
});

/// Quotas by the name of the limit. Cheap to clone.
///
/// Most tiers and overrides have a few: a slice takes the least memory. Overrides that were read share equal ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grants(Arc<[(NameText, Grant)]>);

impl Grants {
    /// Returns the quota of a limit, if one is given. It compares the names in order.
    #[must_use]
    pub fn get(&self, limit: &str) -> Option<&Grant> {
        self.0
            .iter()
            .find(|(name, _)| name.as_str() == limit)
            .map(|(_, grant)| grant)
    }

    /// Returns the limits and their quotas, in the order of the document.
    pub fn iter(&self) -> core::slice::Iter<'_, (NameText, Grant)> {
        self.0.iter()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(NameText, Grant)> for Grants {
    /// Collects the quotas. Of two with one name, the first is kept.
    fn from_iter<I: IntoIterator<Item = (NameText, Grant)>>(grants: I) -> Self {
        let mut kept: Vec<(NameText, Grant)> = Vec::new();
        for (name, grant) in grants {
            if !kept.iter().any(|(known, _)| *known == name) {
                kept.push((name, grant));
            }
        }
        Self(kept.into())
    }
}

impl<'a> IntoIterator for &'a Grants {
    type Item = &'a (NameText, Grant);
    type IntoIter = core::slice::Iter<'a, (NameText, Grant)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Grants {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, grant)| (name, grant)))
    }
}

impl<'de> Deserialize<'de> for Grants {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Grants;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("quotas by the names of limits")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Grants, A::Error> {
                let mut grants: Vec<(NameText, Grant)> =
                    Vec::with_capacity(map.size_hint().unwrap_or(0).min(64));
                while let Some(entry) = map.next_entry::<NameText, Grant>()? {
                    grants.push(entry);
                }
                let mut names: Vec<&NameText> = grants.iter().map(|(name, _)| name).collect();
                names.sort_unstable();
                if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                    let name = pair[0];
                    return Err(A::Error::custom(format_args!(
                        "the limit {:?} is given twice: remove one",
                        name.as_str()
                    )));
                }
                Ok(Grants(grants.into()))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

impl JsonSchema for Grants {
    fn schema_name() -> Cow<'static, str> {
        "Grants".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let grant = generator.subschema_for::<Grant>();
        json_schema!({ "type": "object", "additionalProperties": grant })
    }
}
