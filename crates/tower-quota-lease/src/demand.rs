/// The number of requests within a term that makes a client hot. A lease and its refund are two
/// calls, so leases for fewer requests save little.
const HOT_REQUESTS: u32 = 8;
/// The microseconds over which the requests must spread, unless they filled the term before. A
/// shorter burst is over when its lease arrives.
const LASTING: u64 = 100_000;
const HOT_AT_ONCE: u32 = 64;

#[derive(Default)]
pub(crate) struct Demand {
    span: u64,
    started: u64,
    now: Counts,
    before: Counts,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    requests: u32,
    units: u64,
}

impl Demand {
    pub(crate) fn new(span: u64) -> Self {
        Self {
            span,
            ..Self::default()
        }
    }

    pub(crate) fn note(&mut self, now: u64, units: u64) {
        let elapsed = now.saturating_sub(self.started);
        if elapsed >= self.span {
            self.before = if elapsed < 2 * self.span {
                self.now
            } else {
                Counts::default()
            };
            self.now = Counts::default();
            self.started = now;
        }
        self.now.requests = self.now.requests.saturating_add(1);
        self.now.units = self.now.units.saturating_add(units);
    }

    pub(crate) fn forget(&mut self, units: u64) {
        self.now.requests = self.now.requests.saturating_sub(1);
        self.now.units = self.now.units.saturating_sub(units);
    }

    pub(crate) fn is_recent(&self, now: u64) -> bool {
        now < self.started.saturating_add(2 * self.span)
    }

    pub(crate) fn is_hot(&self, now: u64) -> bool {
        let has_lasted = now >= self.started.saturating_add(LASTING);
        self.before.requests >= HOT_REQUESTS
            || self.now.requests >= HOT_REQUESTS && has_lasted
            || self.now.requests >= HOT_AT_ONCE
    }

    pub(crate) fn units(&self) -> u64 {
        self.now.units.max(self.before.units)
    }

    /// Returns the units if all requests had this cost, because earlier requests may have cost more
    /// or less.
    pub(crate) fn units_at_cost(&self, cost: u64) -> u64 {
        let requests = u64::from(self.now.requests.max(self.before.requests));
        self.units().max(cost).min(requests.saturating_mul(cost))
    }
}
