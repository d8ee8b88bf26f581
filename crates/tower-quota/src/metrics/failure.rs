#[derive(Clone, Copy)]
pub(crate) enum DegradedChoice {
    Allow,
    Refuse,
    Local,
}

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

impl StoreFailureKind {
    pub(super) const LABELS: [&str; 3] = ["store", "timeout", "settle"];

    pub(crate) const fn label(self) -> &'static str {
        Self::LABELS[self as usize]
    }
}
