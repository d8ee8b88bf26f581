use std::borrow::Cow;

use tower_quota_core::{Key, Name};

use super::extractor::KeyExtractor;
use super::header::SentValue;
use super::target::host_of;
use super::values::Place;
use crate::head::RequestHead;

/// Reads one value, for example with [`header`](super::header()).
///
/// In configuration files, write the function's name in [this module](super) and the argument.
///
/// ```
/// use tower_quota::key::{self, ValueKey};
///
/// let by: ValueKey = "header x-api-key".parse()?;
/// assert_eq!(by, key::header("x-api-key"));
/// assert_eq!(by.to_string(), "header x-api-key");
/// # Ok::<(), key::KeyTextError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct ValueKey {
    scope: Name,
    pub(super) text: Name,
    place: Place,
}

impl ValueKey {
    pub(super) fn of(word: &str, place: Place) -> Self {
        Self::with(word, "", place)
    }

    pub(super) fn with(word: &str, argument: &str, place: Place) -> Self {
        // Stored counters depend on the scope, so never change the text.
        let kind = match place {
            Place::Bearer => String::from("bearer token"),
            _ => word.replace('_', " "),
        };
        let argument = if argument.is_empty() {
            String::new()
        } else {
            format!(" {argument}")
        };
        Self {
            scope: Name::from(kind + &argument),
            text: Name::from(format!("{word}{argument}")),
            place,
        }
    }

    /// Returns the key of this decoded value.
    pub fn key_of(&self, value: impl AsRef<[u8]> + Into<Vec<u8>>) -> Key<'static> {
        match self.place {
            Place::Host => Key::owned(self.scope, host_of(value.as_ref()).into_owned()),
            _ => Key::owned(self.scope, value),
        }
    }
}

impl KeyExtractor for ValueKey {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let mut first: Option<SentValue<'r>> = None;
        let mut is_shared = false;
        self.place.each_value(head, &mut |value| match &first {
            // Your application might use another value, so conflicting requests share the empty key.
            Some(first) => is_shared |= *first != value,
            None => first = Some(value),
        });
        let first = first?;
        if is_shared {
            return Some(Key::new(self.scope, &[]));
        }
        match first? {
            empty if empty.is_empty() => None,
            Cow::Borrowed(bytes) => Some(Key::new(self.scope, bytes)),
            Cow::Owned(bytes) => Some(Key::owned(self.scope, bytes)),
        }
    }

    fn each_key(&self, head: &RequestHead<'_>, visit: &mut dyn FnMut(&Key<'_>)) {
        self.place.each_value(head, &mut |value| {
            if let Some(value) = value {
                visit(&Key::new(self.scope, &value));
            }
        });
    }

    fn parse(&self, text: &str) -> Option<Key<'static>> {
        Some(self.key_of(text)).filter(|key| !key.as_bytes().is_empty())
    }
}

pub(crate) fn is_conflict(key: &Key<'_>) -> bool {
    key.as_bytes().is_empty() && *key != Key::EVERYONE
}
