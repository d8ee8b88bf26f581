//! Parts of policies as data, for programs that print policies.

use core::any::Any;
use core::fmt;
use std::sync::{Arc, Mutex};

use tower_quota_core::Name;

/// A part of a policy as data, for programs that print policies.
///
/// Keys, conditions, costs and settle rules of this crate describe themselves as rules documents write them. Closures
/// are described by [`when::described`](crate::when::described) and [`cost::described`](crate::cost::described).
#[derive(Clone)]
#[non_exhaustive]
pub enum Described {
    /// A text, such as `header x-api-key`.
    Text(String),
    /// A number.
    Number(u64),
    /// Several parts, in order.
    List(Vec<Self>),
    /// Parts by name.
    Fields(Vec<(&'static str, Self)>),
    /// A value of the crate that made the part.
    Value(Arc<dyn Any + Send + Sync>),
}

/// The place where a part leaves its description.
pub(crate) type Description = Mutex<Option<Described>>;

impl Described {
    /// Describes a part that only code can give, by the name that documents use for it.
    #[must_use]
    pub fn code(name: impl fmt::Display) -> Self {
        Self::Text(format!("code {name}"))
    }

    /// Describes a part with one field.
    pub(crate) fn field(name: &'static str, value: Self) -> Self {
        Self::Fields(vec![(name, value)])
    }

    /// Describes several texts.
    pub(crate) fn texts<T: fmt::Display>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(
            texts
                .into_iter()
                .map(|text| Self::Text(text.to_string()))
                .collect(),
        )
    }

    /// Describes the key of a scope: documents write keys as scopes are named, as one word.
    pub(crate) fn key(scope: Name) -> Self {
        let scope = scope.as_str();
        let words = [
            "path segment",
            "path parameter",
            "grpc service",
            "grpc method",
            "basic user",
            "bearer token",
        ];
        let text = match words.iter().find(|words| scope.starts_with(*words)) {
            Some(&"bearer token") => "bearer".to_owned(),
            Some(words) => scope.replacen(words, &words.replace(' ', "_"), 1),
            None => scope.to_owned(),
        };
        Self::Text(text)
    }
}

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::List(parts) => parts.fmt(f),
            Self::Fields(fields) => f
                .debug_map()
                .entries(fields.iter().map(|(name, part)| (name, part)))
                .finish(),
            Self::Value(_) => f.write_str("Value"),
        }
    }
}
