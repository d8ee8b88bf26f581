//! Tiers that code assigns.

use std::borrow::Cow;

/// The tier of a request, as an extension that an outer layer attaches: it goes before the document's assignments.
///
/// An override of the client's key goes before both. A tier that the document does not have is no tier.
///
/// ```
/// use http::Request;
/// use tower_quota_rules::Tier;
///
/// let mut request = Request::new(());
/// request.extensions_mut().insert(Tier::new("pro"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tier(Cow<'static, str>);

impl Tier {
    /// Makes a tier of this name.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
