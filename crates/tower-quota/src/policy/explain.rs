//! Explanations of what a policy would do with a request.

use core::fmt;

use tower_quota_core::{Key, Name, Quota};

use super::ask::{Ask, NotAsked};
use super::lists::Listed;
use super::plan::Plan;
use crate::head::RequestHead;

/// Says what a policy would do with a request, without a store: made by [`Policy::explainer`](crate::Policy::explainer).
///
/// It runs what a layer runs: lists, conditions, extractors, quotas and costs, but no [look-ups](crate::Policy::look_up).
///
/// ```
/// use http::Request;
/// use tower_quota::{Explained, Limit, Policy, Quota, RequestHead, when};
///
/// let login = Limit::new("login", Quota::per_minute(5)).when(when::path("/login"));
/// let explainer = Policy::new().skip(when::path("/healthz")).limit(login).explainer();
///
/// let explain = |path| explainer.explain(&RequestHead::of(&Request::get(path).body(()).unwrap()));
/// assert!(matches!(explain("/healthz"), Explained::Skipped));
/// let Explained::Limited(limits) = explain("/login") else { panic!("limited") };
/// assert_eq!((limits[0].name.as_str(), limits[0].cost), ("login", 1));
/// ```
#[derive(Debug)]
pub struct Explainer {
    plan: Plan,
}

/// The explanation of what a policy would do with a request, before anything is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Explained {
    /// The request is not counted.
    Skipped,
    /// The request is neither counted nor blocked.
    Allowed,
    /// The request is blocked.
    Blocked,
    /// A limit refuses it, because it has no key of this scope.
    MissingKey(Name),
    /// A limit refuses it, because it has no credentials of this scope.
    Unauthenticated(Name),
    /// A limit counts by the address of the peer, which the server did not attach.
    NoPeerAddress,
    /// These limits decide; there are none if none applies.
    Limited(Vec<ExplainedLimit>),
}

/// A limit that decides a request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedLimit {
    /// The limit's name.
    pub name: Name,
    /// The quota by which the request is counted: the limit's own, or the one chosen for it.
    pub quota: Quota,
    /// The key that is counted.
    pub key: Key<'static>,
    /// The cost in units.
    pub cost: u64,
    /// True if the limit is evaluated and never enforced.
    pub is_shadow: bool,
}

impl Explainer {
    pub(crate) const fn new(plan: Plan) -> Self {
        Self { plan }
    }

    /// Returns what the policy would do with a request.
    #[must_use]
    pub fn explain(&self, head: &RequestHead<'_>) -> Explained {
        self.plan.explain(head)
    }
}

impl Plan {
    /// Returns what the policy would do with a request.
    pub(crate) fn explain(&self, head: &RequestHead<'_>) -> Explained {
        match self.lists.find(head) {
            Listed::Skipped => return Explained::Skipped,
            Listed::Allowed => return Explained::Allowed,
            Listed::Blocked => return Explained::Blocked,
            Listed::Unlisted => {}
        }
        let mut ask = Ask::new(self);
        match ask.read(head) {
            Ok(()) | Err(NotAsked::NoLimit) => Explained::Limited(ask.explained()),
            Err(NotAsked::MissingKey(scope)) => Explained::MissingKey(scope),
            Err(NotAsked::Unauthenticated(scope)) => Explained::Unauthenticated(scope),
            Err(NotAsked::NoPeerAddress) => Explained::NoPeerAddress,
        }
    }
}

impl fmt::Debug for ExplainedLimit {
    /// Does not show the key, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ExplainedLimit");
        shown.field("name", &self.name).field("quota", &self.quota).field("by", &self.key.scope());
        shown.field("cost", &self.cost).field("is_shadow", &self.is_shadow).finish_non_exhaustive()
    }
}
