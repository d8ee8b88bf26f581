//! The limits of requests: quotas for tower-quota, and the numbers of a GCRA script for the peers.

use std::time::Duration;

use tower_quota_core::{Charge, Key, Name, Quota};

/// One limit of a request.
pub(super) struct Ask {
    pub(super) name: &'static str,
    limit: Name,
    quota: Quota,
    pub(super) units: u64,
    /// Microseconds.
    pub(super) period: u64,
    /// Two clients share the counter.
    is_shared: bool,
}

impl Ask {
    const fn new(name: &'static str, units: u64, seconds: u64) -> Self {
        let quota = Quota::new(units, Duration::from_secs(seconds));
        Self {
            name,
            limit: Name::new(name),
            quota,
            units,
            period: seconds * 1_000_000,
            is_shared: false,
        }
    }

    const fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Returns the charge of the client's key or the team's.
    pub(super) fn charge<'a>(&'a self, client: &'a Key<'a>, team: &'a Key<'a>) -> Charge<'a> {
        Charge::new(
            self.limit,
            &self.quota,
            if self.is_shared { team } else { client },
        )
    }

    /// Returns the number of the client or of the team.
    pub(super) fn counter(&self, client: u64) -> u64 {
        if self.is_shared { client / 2 } else { client }
    }

    /// Returns the microseconds between units.
    pub(super) fn interval(&self) -> u64 {
        self.period / self.units
    }

    /// Returns the microseconds that a client may be ahead.
    pub(super) fn tolerance(&self) -> u64 {
        self.period - self.interval()
    }
}

/// Rates that nearly never refuse, so that all contenders do their full work. A request is forgotten within 36 ms, so
/// most requests find a full bucket.
static SHORT: [Ask; 3] = [
    Ask::new("second", 1_000, 1),
    Ask::new("minute", 10_000, 60),
    Ask::new("hour", 100_000, 3_600),
];
static TWO_KEYS: [Ask; 3] = [
    Ask::new("second", 1_000, 1),
    Ask::new("minute", 10_000, 60),
    Ask::new("hour", 100_000, 3_600).shared(),
];

/// Quotas that remember a request for a minute or longer: requests find what earlier ones have left.
static LASTING: [Ask; 4] = [
    Ask::new("hour", 6_000, 360_000),
    Ask::new("day", 14_400, 864_000),
    Ask::new("week", 50_400, 6_048_000),
    Ask::new("login", 28_800, 1_728_000),
];
/// The same policy with an earlier quota of one limit, and of all.
static ONE_OLD: [Ask; 3] = [
    Ask::new("hour", 12_000, 360_000),
    Ask::new("day", 14_400, 864_000),
    Ask::new("week", 50_400, 6_048_000),
];
static OLD: [Ask; 3] = [
    Ask::new("hour", 12_000, 360_000),
    Ask::new("day", 12_000, 864_000),
    Ask::new("week", 100_800, 6_048_000),
];

/// The requests of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One limit.
    One,
    /// Three limits on one key.
    Three,
    /// Three limits, two of them on one key and one on another.
    ThreeOnTwo,
    /// Three limits on one key that remember requests longer.
    Lasting,
    /// The same, by a million clients.
    Stored,
    /// Nine of ten as `Lasting`, one of ten the same and a fourth.
    Mixed,
    /// Half as `Lasting`, half with an earlier quota of one limit.
    OneQuotaInTurn,
    /// Half as `Lasting`, half with earlier quotas of all limits.
    QuotasInTurn,
}

/// A request: its client, and the limits it asks.
pub(super) struct Request {
    pub(super) client: u64,
    pub(super) asks: &'static [Ask],
}

impl Shape {
    /// Returns the number of clients. Few where clients return, so that each returns often in a short run too.
    const fn clients(self) -> u64 {
        if matches!(
            self,
            Self::One | Self::Three | Self::ThreeOnTwo | Self::Stored
        ) {
            1_000_000
        } else {
            20_000
        }
    }

    /// Returns the request of a random number.
    pub(super) fn request(self, draw: u64) -> Request {
        let (client, draw) = (draw % self.clients(), draw / self.clients());
        let asks = match self {
            Self::One => &SHORT[..1],
            Self::Three => &SHORT,
            Self::ThreeOnTwo => &TWO_KEYS,
            Self::Mixed if draw.is_multiple_of(10) => &LASTING,
            Self::OneQuotaInTurn if draw.is_multiple_of(2) => &ONE_OLD,
            Self::QuotasInTurn if draw.is_multiple_of(2) => &OLD,
            Self::Lasting
            | Self::Stored
            | Self::Mixed
            | Self::OneQuotaInTurn
            | Self::QuotasInTurn => &LASTING[..3],
        };
        Request { client, asks }
    }

    /// Returns the scope of the clients' keys. Each case has its own, so that cases share no entries.
    pub(super) const fn scope(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Three => "three",
            Self::ThreeOnTwo => "two",
            Self::Lasting | Self::Stored => "lasting",
            Self::Mixed => "mixed",
            Self::OneQuotaInTurn => "turn1",
            Self::QuotasInTurn => "turns",
        }
    }
}
