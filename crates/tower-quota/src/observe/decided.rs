use core::fmt;
use core::time::Duration;
use std::sync::OnceLock;

use tower_quota_core::{Decision, Key, Name};

use crate::head::RequestHead;
use crate::layer::FindClient;
use crate::observe::OutcomeLabel;
use crate::observe::request_id::{request_id, trace_id};
use crate::request::Rules;
use crate::response::Reason;

/// A decision for your [`on_decision`](crate::RateLimitLayer::on_decision) listener.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Decided<'a> {
    /// The head of the request, with looked-up values in its extensions.
    pub head: RequestHead<'a>,
    /// The decision of the store, or of this instance during an outage.
    ///
    /// Blocked requests, missing keys and failed stores have no decision.
    pub decision: Option<&'a Decision>,
    /// The reason of a refusal.
    pub reason: Option<Reason<'a>>,
    /// Whether the store was unavailable.
    pub is_degraded: bool,
    /// The [version](crate::Policy::version) of the policy, if set.
    pub version: Option<u64>,
    pub(crate) keys: &'a [(Name, Key<'static>)],
    pub(crate) found: Option<&'a FoundClient<'a>>,
}

/// The client of a refused request, found when the first observer asks.
pub(crate) struct FoundClient<'a> {
    find: &'a FindClient,
    client: OnceLock<Option<Key<'static>>>,
}

impl<'a> FoundClient<'a> {
    pub(crate) fn new(rules: &'a Rules) -> Option<Self> {
        Some(Self {
            find: rules.settings.find_client.as_deref()?,
            client: OnceLock::new(),
        })
    }
}

impl fmt::Debug for FoundClient<'_> {
    /// Hides the key, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundClient").finish_non_exhaustive()
    }
}

impl<'a> Decided<'a> {
    pub(crate) const fn admitted(
        rules: &Rules,
        head: RequestHead<'a>,
        decision: &'a Decision,
    ) -> Self {
        Self {
            head,
            decision: Some(decision),
            reason: None,
            is_degraded: false,
            version: rules.plan.version,
            keys: &[],
            found: None,
        }
    }

    pub(crate) const fn refused(
        rules: &Rules,
        head: RequestHead<'a>,
        reason: Reason<'a>,
        found: Option<&'a FoundClient<'a>>,
    ) -> Self {
        Self {
            head,
            decision: None,
            reason: Some(reason),
            is_degraded: false,
            version: rules.plan.version,
            keys: &[],
            found,
        }
    }

    /// Returns the key for each limit, including shadow limits, for your logs.
    ///
    /// Keys may be secrets, so `Debug` hides them. Blocked requests and missing keys have no keys.
    pub fn keys(&self) -> impl Iterator<Item = (Name, &'a Key<'static>)> + use<'a> {
        self.keys.iter().map(|(limit, key)| (*limit, key))
    }

    /// Returns the limits that refuse the request.
    pub fn refusing_limits(&self) -> impl Iterator<Item = Name> + use<'a> {
        let statuses = self.decision.into_iter().flat_map(Decision::enforced);
        statuses
            .filter(|status| status.outcome.is_refusal())
            .map(|status| status.name)
    }

    /// Returns the wait of a refused request, without jitter, if a retry helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.decision.and_then(Decision::retry_after)
    }

    /// Returns the queueing time of an admitted request, or zero.
    #[must_use]
    pub fn wait(&self) -> Duration {
        match (self.reason, self.decision) {
            (None, Some(decision)) => decision.wait(),
            _ => Duration::ZERO,
        }
    }

    /// Returns the decision as a word, for a label of your metrics.
    ///
    /// Admitted requests are `allowed`, `queued` after a wait, or `degraded` if the store failed. Refused requests are
    /// `limited`, `never` (above the capacity, or not decidable), `blocked`, `missing_key` (also credentials and
    /// addresses) or `unavailable`.
    #[must_use]
    pub fn label(&self) -> &'static str {
        self.outcome().text()
    }

    /// Returns the trace id of the request's `traceparent`, if the header is valid.
    #[must_use]
    pub fn trace_id(&self) -> Option<&'a str> {
        trace_id(self.head.headers())
    }

    /// Returns the request's `x-request-id`, if the header has at most 128 visible ASCII characters.
    ///
    /// Clients may send any id, unless your proxy replaces it.
    #[must_use]
    pub fn request_id(&self) -> Option<&'a str> {
        request_id(self.head.headers())
    }

    /// Returns the client of the refusing limit with the longest wait.
    ///
    /// Blocked requests and missing keys have no such client.
    #[must_use]
    pub fn refused_client(&self) -> Option<(Name, &'a Key<'static>)> {
        let status = self.decision?.tightest()?;
        self.keys().find(|(limit, _)| *limit == status.name)
    }

    /// Returns the client of a refused request: the client of the refusing limit, or else the one of
    /// [`RateLimitHandle::find_clients_with`](crate::RateLimitHandle::find_clients_with), which runs once for a request.
    #[must_use]
    pub fn client(&self) -> Option<&'a Key<'static>> {
        if let Some((_, key)) = self.refused_client() {
            return Some(key);
        }
        let FoundClient { find, client } = self.found?;
        client.get_or_init(|| find(&self.head)).as_ref()
    }

    pub(crate) fn outcome(&self) -> OutcomeLabel {
        match (self.reason, self.decision) {
            (Some(Reason::OverQuota(_)), _) => OutcomeLabel::Limited,
            (Some(Reason::NeverFits(_) | Reason::TooManyLimits | Reason::Undecidable(_)), _) => {
                OutcomeLabel::Never
            }
            (Some(Reason::Blocked), _) => OutcomeLabel::Blocked,
            (Some(Reason::StoreFailure(_)), _) => OutcomeLabel::Unavailable,
            (Some(_), _) => OutcomeLabel::MissingKey,
            (None, Some(decision)) => OutcomeLabel::of(decision.outcome()),
            (None, None) => OutcomeLabel::Degraded,
        }
    }
}
