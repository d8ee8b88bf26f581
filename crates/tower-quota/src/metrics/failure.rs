//! Failures of the store, and what was done about them, as labels.

/// The choice for a request that the store could not decide.
#[derive(Clone, Copy)]
pub(crate) enum DegradedChoice {
    Allow,
    Refuse,
    Local,
}

/// The kind of a store's failure.
#[derive(Clone, Copy)]
pub(crate) enum StoreFailureKind {
    Store,
    Timeout,
    Settle,
}

#[cfg(feature = "metrics")]
impl DegradedChoice {
    pub(super) const LABELS: [&str; 3] = ["allow", "refuse", "local"];
}

#[cfg(feature = "metrics")]
impl StoreFailureKind {
    pub(super) const LABELS: [&str; 3] = ["store", "timeout", "settle"];
}
