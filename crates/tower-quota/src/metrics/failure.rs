#[derive(Clone, Copy)]
pub(crate) enum StoreFailureKind {
    Store,
    Timeout,
    Settle,
}

impl StoreFailureKind {
    pub(super) const LABELS: [&str; 3] = ["store", "timeout", "settle"];

    pub(crate) const fn label(self) -> &'static str {
        Self::LABELS[self as usize]
    }
}
