//! Counting by a parameter of the query.

use std::borrow::Cow;

use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use super::told::Told;
use crate::head::RequestHead;

/// Counts by the value of a parameter of the query, such as an API key in `?key=`. Names and values are decoded as
/// those of a form (`application/x-www-form-urlencoded`), so that one key spelled differently is one client.
///
/// It is missing when absent or empty. Given several times with different values, it names nobody, as with
/// [`header`](super::header). A client can make up any value: limit by address too.
#[must_use]
pub fn query(name: impl Into<Name>) -> Query {
    let name = name.into();
    Query { scope: Name::from(format!("query {name}")), name }
}

/// The extractor of [`query`].
#[derive(Clone, Debug)]
pub struct Query {
    scope: Name,
    name: Name,
}

impl KeyExtractor for Query {
    fn scope(&self) -> Name {
        self.scope
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let pairs = form_urlencoded::parse(head.uri().query()?.as_bytes());
        let values = pairs.filter(|(name, _)| name == self.name.as_str()).map(|(_, value)| match value {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        });
        Told::by(values).into_key(self.scope)
    }
}
