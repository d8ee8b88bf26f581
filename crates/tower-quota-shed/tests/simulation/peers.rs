//! The algorithms of the field, by their published constants, and tower-quota's.

use std::time::Duration;

use super::limit::{Kind, Limit, LimitSettings, Sample};

/// Finds the limit of requests in progress.
pub(crate) trait Algorithm {
    fn limit(&self) -> usize;
    fn completed(&mut self, sample: Sample);
}

/// The limit of tower-quota, atomics included.
pub(crate) struct Ours(pub(crate) Limit);

impl Ours {
    /// The limit with the defaults of the layer.
    pub(crate) fn new() -> Self {
        Self::within(2, 20, 1_000_000)
    }

    pub(crate) fn within(floor: usize, start: usize, ceiling: usize) -> Self {
        Self(Limit::new(&LimitSettings {
            floor,
            start,
            ceiling,
        }))
    }
}

impl Algorithm for Ours {
    fn limit(&self) -> usize {
        self.0.get()
    }

    fn completed(&mut self, sample: Sample) {
        self.0.completed(sample);
    }
}

/// A number that somebody guessed.
pub(crate) struct Fixed(pub(crate) usize);

impl Algorithm for Fixed {
    fn limit(&self) -> usize {
        self.0
    }

    fn completed(&mut self, _: Sample) {}
}

/// Adds one for a success, and multiplies by 0.9 after a drop or a latency above the timeout.
pub(crate) struct Aimd {
    pub(crate) limit: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) timeout: Duration,
    /// Adds one place for each success, as published, or for each limit of successes, as TCP does.
    pub(crate) per_limit: bool,
}

impl Aimd {
    /// The sketch that the other limits were compared with: a timeout of ten times the work.
    pub(crate) fn new() -> Self {
        Self {
            limit: 20.0,
            least: 4.0,
            most: 1_000.0,
            timeout: Duration::from_millis(100),
            per_limit: true,
        }
    }
}

impl Algorithm for Aimd {
    fn limit(&self) -> usize {
        self.limit as usize
    }

    fn completed(&mut self, sample: Sample) {
        if sample.kind == Kind::Failed || sample.took > self.timeout {
            self.limit *= 0.9;
        } else if sample.in_progress as f64 * 2.0 >= self.limit {
            self.limit += if self.per_limit {
                1.0 / self.limit
            } else {
                1.0
            };
        }
        self.limit = self.limit.clamp(self.least, self.most);
    }
}

/// Keeps the estimated queue between two bounds that grow with the logarithm of the limit.
pub(crate) struct Vegas {
    pub(crate) limit: f64,
    pub(crate) most: f64,
    pub(crate) smoothing: f64,
    pub(crate) alpha: fn(f64) -> f64,
    pub(crate) beta: fn(f64) -> f64,
    pub(crate) decrease: fn(f64) -> f64,
    pub(crate) base: Option<f64>,
    pub(crate) samples: f64,
    pub(crate) jitter: f64,
    pub(crate) rng: fastrand::Rng,
}

fn logarithm(limit: f64) -> f64 {
    limit.log10().floor().max(1.0)
}

impl Vegas {
    pub(crate) fn new() -> Self {
        let mut rng = fastrand::Rng::with_seed(7);
        Self {
            limit: 20.0,
            most: 1_000.0,
            smoothing: 1.0,
            alpha: |limit| 3.0 * logarithm(limit),
            beta: |limit| 6.0 * logarithm(limit),
            decrease: |limit| limit - logarithm(limit),
            base: None,
            samples: 0.0,
            jitter: 0.5 + rng.f64() / 2.0,
            rng,
        }
    }
}

impl Algorithm for Vegas {
    fn limit(&self) -> usize {
        self.limit as usize
    }

    fn completed(&mut self, sample: Sample) {
        let took = sample.took.as_secs_f64();
        self.samples += 1.0;
        if self.samples >= self.jitter * 30.0 * self.limit {
            self.samples = 0.0;
            self.jitter = 0.5 + self.rng.f64() / 2.0;
            self.base = Some(took);
            return;
        }
        let Some(base) = self.base.filter(|base| *base <= took) else {
            self.base = Some(took);
            return;
        };
        let limit = self.limit;
        let queue = (limit * (1.0 - base / took)).ceil();
        let next = if sample.kind == Kind::Failed {
            (self.decrease)(limit)
        } else if sample.in_progress as f64 * 2.0 < limit {
            limit
        } else if queue <= logarithm(limit) {
            limit + (self.beta)(limit)
        } else if queue < (self.alpha)(limit) {
            limit + logarithm(limit)
        } else if queue > (self.beta)(limit) {
            (self.decrease)(limit)
        } else {
            limit
        };
        let next = next.clamp(1.0, self.most);
        self.limit = (1.0 - self.smoothing) * limit + self.smoothing * next;
    }
}

/// Compares the latency with its long average.
pub(crate) struct Gradient2 {
    limit: f64,
    long: f64,
    samples: f64,
}

impl Gradient2 {
    pub(crate) fn new() -> Self {
        Self {
            limit: 20.0,
            long: 0.0,
            samples: 0.0,
        }
    }
}

impl Algorithm for Gradient2 {
    fn limit(&self) -> usize {
        self.limit as usize
    }

    fn completed(&mut self, sample: Sample) {
        let short = sample.took.as_secs_f64();
        self.samples += 1.0;
        self.long = if self.samples <= 10.0 {
            self.long + (short - self.long) / self.samples
        } else {
            self.long + (short - self.long) * 2.0 / 601.0
        };
        if self.long > 2.0 * short {
            self.long *= 0.95;
        }
        if (sample.in_progress as f64) < self.limit / 2.0 {
            return;
        }
        let gradient = (1.5 * self.long / short).clamp(0.5, 1.0);
        let next = 0.8 * self.limit + 0.2 * (gradient * self.limit + 4.0);
        // The published least limit of 20 would be the right limit by chance.
        self.limit = next.clamp(4.0, 1_000.0);
    }
}

/// Compares the mean latency of a window with the least of 20 s, and takes a latency that does not fall with the limit for
/// the new base.
pub(crate) struct Believe {
    limit: f64,
    end: f64,
    counts: [f64; 3],
    means: Vec<(f64, f64)>,
    fall: Option<(f64, f64)>,
}

impl Believe {
    pub(crate) fn new() -> Self {
        Self {
            limit: 20.0,
            end: 0.0,
            counts: [0.0; 3],
            means: Vec::new(),
            fall: None,
        }
    }
}

impl Algorithm for Believe {
    fn limit(&self) -> usize {
        self.limit as usize
    }

    fn completed(&mut self, sample: Sample) {
        const TOLERANCE: f64 = 1.6;
        let now = sample.ended.as_secs_f64();
        let [count, sum, full] = &mut self.counts;
        *count += 1.0;
        *sum += sample.took.as_secs_f64();
        if sample.in_progress as f64 * 1.1 >= self.limit {
            *full += 1.0;
        }
        if now < self.end || *count < 100.0 {
            return;
        }
        let mean = *sum / *count;
        let is_full = *full * 2.0 >= *count;
        self.counts = [0.0; 3];
        self.end = now + f64::max(0.05, 2.0 * mean);
        self.means.retain(|(at, _)| *at > now - 20.0);
        self.means.push((now, mean));
        let base = self
            .means
            .iter()
            .map(|(_, mean)| *mean)
            .fold(mean, f64::min);
        if mean <= TOLERANCE * base {
            self.fall = None;
            if is_full {
                self.limit = (self.limit + f64::max(1.0, self.limit.sqrt() / 2.0)).min(1_000.0);
            }
            return;
        }
        let (from, slow) = *self.fall.get_or_insert((self.limit, mean));
        self.limit = (self.limit * f64::max(0.75, TOLERANCE * base / mean)).max(4.0);
        if self.limit < 0.7 * from {
            if mean > 0.85 * slow {
                self.means = vec![(now, mean)];
            }
            self.fall = None;
        }
    }
}
