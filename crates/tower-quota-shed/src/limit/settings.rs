use crate::error::ConfigError;

const MOST: usize = 1_000_000;

/// The range of the limit of requests in progress.
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
