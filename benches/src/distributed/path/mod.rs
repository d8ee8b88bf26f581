//! The ways to decide that are compared: each is a [`Path`].

#[cfg(feature = "limitador")]
mod limitador;
mod script;
mod store;
mod trypema;

use std::time::Duration;

use clap::ValueEnum;

#[cfg(feature = "limitador")]
pub(super) use self::limitador::Limitador;
pub(super) use self::script::WindowScript;
pub(super) use self::store::StorePath;
pub(super) use self::trypema::Trypema;

/// The answer to one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Admitted,
    Refused,
    /// No decision: the caller would have to choose.
    Failed,
}

impl Answer {
    pub(super) const fn of(is_admitted: bool) -> Self {
        if is_admitted {
            Self::Admitted
        } else {
            Self::Refused
        }
    }
}

/// A way to decide whether a client may go ahead, at the cost of one unit.
pub(super) trait Path: Clone + Send + Sync + 'static {
    fn decide(&self, client: u32) -> impl Future<Output = Answer> + Send + 'static;

    /// Ends the path, and returns the units that it has charged and lost, as far as it knows.
    fn close(&self) -> impl Future<Output = u64> + Send {
        async { 0 }
    }
}

/// The name of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Contender {
    Exact,
    Leased,
    Trypema,
    #[cfg(feature = "limitador")]
    Limitador,
    Script,
}

impl Contender {
    pub(super) const ALL: &[Self] = &[
        Self::Exact,
        Self::Leased,
        Self::Trypema,
        #[cfg(feature = "limitador")]
        Self::Limitador,
        Self::Script,
    ];

    /// Those of tower-quota.
    pub(super) const OURS: &[Self] = &[Self::Exact, Self::Leased];

    /// Returns the name in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Exact => "tower-quota, exact",
            Self::Leased => "tower-quota, leased",
            Self::Trypema => "trypema, hybrid",
            #[cfg(feature = "limitador")]
            Self::Limitador => "limitador, cached",
            Self::Script => "redis-rs, INCR and EXPIRE",
        }
    }

    /// Returns the name on a command line.
    pub(super) const fn argument(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Leased => "leased",
            Self::Trypema => "trypema",
            #[cfg(feature = "limitador")]
            Self::Limitador => "limitador",
            Self::Script => "script",
        }
    }

    /// Returns the most units that a client of this rate may be admitted in a time.
    ///
    /// tower-quota counts by buckets of a second's units, the others by windows of a second.
    pub(super) fn allowed(self, rate: u32, span: Duration) -> u64 {
        let rate = f64::from(rate);
        (match self {
            Self::Exact | Self::Leased => rate + rate * span.as_secs_f64(),
            _ => rate * span.as_secs_f64().ceil(),
        }) as u64
    }
}
