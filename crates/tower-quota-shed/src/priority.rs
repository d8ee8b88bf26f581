use http::HeaderName;
use tower_quota::RequestHead;
use tower_quota::when::Condition;

use crate::error::ConfigError;

/// The class of a request. Under pressure, the layer refuses the lowest classes first.
///
/// ```
/// use tower_quota::when;
/// use tower_quota_shed::{Priority, ShedLayer};
///
/// let layer = ShedLayer::new()
///     .priority(Priority::Critical.when(when::path("/checkout")))
///     // Only your own services may choose a class.
///     .priority(Priority::from_header("x-priority", when::path("/internal/{*rest}"))?)
///     .priority(|head| if head.headers().contains_key("x-crawler") { Priority::Background } else { Priority::Normal });
/// # let _ = layer;
/// # Ok::<(), tower_quota_shed::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Requests without which your service fails, such as payments. The layer refuses these last.
    Critical,
    /// Requests of people who wait for the answer.
    High,
    /// Requests without another class.
    #[default]
    Normal,
    /// Requests that may fail without harm, such as suggestions.
    Low,
    /// Requests that a program repeats later, such as crawlers and exports.
    Background,
}

impl Priority {
    /// All classes, beginning with the highest.
    pub const ALL: [Self; 5] = [
        Self::Critical,
        Self::High,
        Self::Normal,
        Self::Low,
        Self::Background,
    ];

    /// Returns the name of the class in lower case, as in headers and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
            Self::Background => "background",
        }
    }

    /// Returns a rule that gives this class to the requests that match.
    pub fn when(
        self,
        condition: impl Condition,
    ) -> impl Fn(&RequestHead<'_>) -> Option<Self> + Send + Sync + 'static {
        let is_low = self as usize > Self::Normal as usize;
        // A request in doubt, such as one with two values of a header, gets no better class.
        move |head: &RequestHead<'_>| condition(&head.in_doubt(is_low)).then_some(self)
    }

    /// Returns a rule that reads the class from a header of trusted callers.
    ///
    /// The header has the [name](Self::name) of a class. If the condition does not match, the rule ignores the header,
    /// because otherwise every client would choose the highest class.
    ///
    /// # Errors
    /// Returns an error if the name cannot be the name of a header.
    pub fn from_header(
        name: &str,
        trusted: impl Condition,
    ) -> Result<impl Fn(&RequestHead<'_>) -> Option<Self> + Send + Sync + 'static, ConfigError>
    {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ConfigError::HeaderName(name.to_owned()))?;
        Ok(move |head: &RequestHead<'_>| {
            let sent = head.headers().get(&header)?.as_bytes();
            let class = Self::ALL
                .into_iter()
                .find(|class| sent.eq_ignore_ascii_case(class.name().as_bytes()));
            class.filter(|_| trusted(head))
        })
    }
}
