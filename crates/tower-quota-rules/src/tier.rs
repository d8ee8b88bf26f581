use std::borrow::Cow;

/// The tier of a request, an extension from your own layer.
///
/// It takes precedence over assignments, and an override takes precedence over it. Unknown names
/// are ignored.
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
    /// Creates a tier with this name.
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
