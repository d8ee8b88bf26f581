use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[cfg(feature = "axum")]
use matchit::Router;
use tower_quota_core::Lock;

/// Values that outer layers and routers would add to a sample request, and what the sample leaves open.
///
/// Insert the context into the extensions of a request before you [explain](crate::RateLimitHandle::explain) it. Requests
/// to a layer ignore the context. Clones share the notes.
///
/// ```
/// use http::Request;
/// use tower_quota::{Limit, Policy, Quota, RequestHead, explain::SampleContext, key};
///
/// let explainer = Policy::new().limit(Limit::new("minute", Quota::per_minute(9)).by(key::route())).explainer();
/// let context = SampleContext::default();
/// let request = Request::get("/users/7").extension(context.clone()).body(()).unwrap();
/// let _ = explainer.explain(&RequestHead::of(&request));
/// assert_eq!(context.unknown().len(), 1);
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct SampleContext {
    route: Option<String>,
    keys: BTreeMap<String, String>,
    unknown: Arc<Lock<BTreeSet<String>>>,
}

impl SampleContext {
    /// Sets the route that axum would match.
    pub fn route(mut self, route: impl Into<String>) -> Self {
        self.route = Some(route.into());
        self
    }

    /// Sets the route to the one of these patterns that axum would match for a path. Other patterns may exist, so the
    /// context notes the assumption.
    #[cfg(feature = "axum")]
    pub fn route_of_path<'p>(
        self,
        path: &str,
        patterns: impl IntoIterator<Item = &'p str>,
    ) -> Self {
        let mut router = Router::new();
        for pattern in patterns {
            // A pattern that is no route of axum matches no request.
            let _ = router.insert(pattern, pattern);
        }
        let Ok(found) = router.at(path) else {
            return self;
        };
        let route = *found.value;
        self.note(format!(
            "`route` is missing: {route:?} is assumed, because the path matches it"
        ));
        self.route(route)
    }

    /// Sets the text of a key that your code reads, by its name.
    pub fn key(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.keys.insert(name.into(), text.into());
        self
    }

    /// Returns the text of a key that your code reads.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.keys.get(name).map(String::as_str)
    }

    /// Notes something that the sample leaves open.
    pub fn note(&self, unknown: impl Into<String>) {
        self.unknown.lock().insert(unknown.into());
    }

    /// Returns everything that the explanations so far could not know.
    #[must_use]
    pub fn unknown(&self) -> Vec<String> {
        self.unknown.lock().iter().cloned().collect()
    }

    pub(crate) fn given_route(&self) -> Option<&str> {
        self.route.as_deref()
    }
}

impl fmt::Debug for SampleContext {
    /// Hides the keys, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleContext")
            .field("route", &self.route)
            .field("unknown", &self.unknown)
            .finish_non_exhaustive()
    }
}
