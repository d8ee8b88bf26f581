#[cfg(feature = "metrics")]
use tower_quota_core::LimitStatus;
use tower_quota_core::Outcome;

/// The words for outcomes in metrics, events and spans.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(dead_code, reason = "only metrics count these outcomes")
)]
pub(crate) enum OutcomeLabel {
    Allowed,
    Queued,
    Limited,
    Never,
    Degraded,
    /// A shadow limit would refuse the request.
    Shadowed,
    /// The limit would admit a request that another limit refuses.
    WouldAllow,
    // Only for requests.
    Skipped,
    Blocked,
    MissingKey,
    Unavailable,
}

impl OutcomeLabel {
    pub(crate) const TEXTS: [&str; 11] = [
        "allowed",
        "queued",
        "limited",
        "never",
        "degraded",
        "shadowed",
        "would_allow",
        "skipped",
        "blocked",
        "missing_key",
        "unavailable",
    ];

    pub(crate) const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Refuse(_) => Self::Limited,
            Outcome::Never => Self::Never,
            Outcome::Wait(_) => Self::Queued,
            _ => Self::Allowed,
        }
    }

    #[cfg(feature = "metrics")]
    pub(crate) const fn of_limit(status: &LimitStatus) -> Self {
        match (status.is_shadow, status.outcome.is_refusal()) {
            (false, _) => Self::of(status.outcome),
            (true, true) => Self::Shadowed,
            (true, false) => Self::Allowed,
        }
    }

    pub(crate) const fn text(self) -> &'static str {
        Self::TEXTS[self as usize]
    }
}
