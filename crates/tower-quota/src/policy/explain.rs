use super::explained::Explained;
use super::plan::Plan;
use super::request_charges::RequestCharges;
use crate::head::RequestHead;

/// Explains a policy's actions without a store. Made by [`Policy::explainer`](crate::Policy::explainer).
///
/// The explainer runs your lists, conditions, extractors, quotas and costs, but no [look-ups](crate::Policy::look_up).
///
/// ```
/// use http::Request;
/// use tower_quota::{Limit, Policy, Quota, RequestHead, explain::Explained, when};
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
    pub(super) plan: Plan,
}

impl Explainer {
    /// Returns what the policy would do with a request.
    #[must_use]
    pub fn explain(&self, head: &RequestHead<'_>) -> Explained {
        self.plan.explain(head)
    }
}

impl Plan {
    pub(crate) fn explain(&self, head: &RequestHead<'_>) -> Explained {
        let head = &head.of_sample();
        if let Some(listed) = self.lists.find(head) {
            return listed;
        }
        let mut asked = RequestCharges::new(self);
        asked.read(head);
        match asked.refusal {
            Some(reason) => Explained::Refused(reason),
            None => Explained::Limited(asked.explained()),
        }
    }
}
