use http::Request;
use tower_quota_core::Name;

/// The limits that flag a request over the quota. See [`Over::Flag`](crate::Over::Flag).
///
/// The layer puts the value into the extensions of a flagged request. With the feature `axum`, you
/// can use `Flagged` as an extractor, which is empty for other requests. Nested layers share the
/// value.
///
/// ```
/// use tower_quota::Flagged;
///
/// async fn login(flagged: Flagged) -> &'static str {
///     if flagged.by("challenge") { "solve this first" } else { "your password, please" }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flagged(Vec<Name>);

impl Flagged {
    /// Returns whether this limit flags the request.
    #[must_use]
    pub fn by(&self, limit: &str) -> bool {
        self.limits().any(|name| name.as_str() == limit)
    }

    /// Returns the limits that flag the request.
    pub fn limits(&self) -> impl Iterator<Item = Name> {
        self.0.iter().copied()
    }

    pub(crate) fn attach<B>(limits: Vec<Name>, request: &mut Request<B>) {
        if !limits.is_empty() {
            let flagged: &mut Self = request.extensions_mut().get_or_insert_default();
            flagged.0.extend(limits);
        }
    }
}
