/// The reason why the layer refused a request.
///
/// A refusal has the reason in the header field `tower-quota-shed-cause`, and the class of the request in
/// `tower-quota-shed-priority`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// All places were in use.
    Limit,
    /// The remaining places were for higher classes.
    Priority,
    /// The key had more places than its share, and the remaining places were for other keys.
    Share,
    /// The request waited, and its place came too late or went to a newer request.
    Queue,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 4] = [Self::Limit, Self::Priority, Self::Share, Self::Queue];

    /// Returns the name of the cause, as in headers and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Priority => "priority",
            Self::Share => "share",
            Self::Queue => "queue",
        }
    }
}
