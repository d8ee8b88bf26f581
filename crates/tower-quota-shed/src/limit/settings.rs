use crate::error::ConfigError;

/// The highest ceiling.
const MOST: usize = 1_000_000;

/// The range in which the layer looks for its limit of requests in progress.
///
/// The defaults suit most services, because the layer measures the limit. Raise the floor if some requests must always
/// enter, and lower the ceiling if each request or each open body needs much memory.
///
/// ```
/// use tower_quota_shed::LimitSettings;
///
/// let settings = LimitSettings::default().floor(8).ceiling(2_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    pub(crate) floor: usize,
    pub(crate) start: usize,
    pub(crate) ceiling: usize,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            floor: 2,
            start: 20,
            ceiling: MOST,
        }
    }
}

impl LimitSettings {
    /// Returns a limit that stays at this number of requests.
    #[must_use]
    pub const fn fixed(requests: usize) -> Self {
        Self {
            floor: requests,
            start: requests,
            ceiling: requests,
        }
    }

    /// The lowest limit in requests. Defaults to 2.
    #[must_use]
    pub const fn floor(mut self, requests: usize) -> Self {
        self.floor = requests;
        self
    }

    /// The limit in requests before the first measurement. Defaults to 20.
    #[must_use]
    pub const fn start(mut self, requests: usize) -> Self {
        self.start = requests;
        self
    }

    /// The highest limit in requests, and the most requests in progress with long bodies. Defaults to a million.
    #[must_use]
    pub const fn ceiling(mut self, requests: usize) -> Self {
        self.ceiling = requests;
        self
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let Self {
            floor,
            start,
            ceiling,
        } = *self;
        let is_ordered = 1 <= floor && floor <= start && start <= ceiling && ceiling <= MOST;
        is_ordered.then_some(()).ok_or(ConfigError::LimitRange {
            floor,
            start,
            ceiling,
        })
    }
}
