//! Translates the parameters of a case into quotas.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tower_quota_core::{Algorithm, Quota, Timestamp};

use super::case::{Case, Limit, Refill, Unit};

/// The limits of a case for a single key, and the units taken before the first step.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) limits: Vec<Quota>,
    /// Microseconds per unit of time in the case.
    pub(crate) scale: u64,
    /// Units taken before the first step, with the instant and the position of the limit.
    pub(crate) taken: Vec<(u64, usize, u64)>,
}

/// The instant zero of all cases. At midnight UTC, the windows of all cases begin.
pub(crate) const ORIGIN: Timestamp = Timestamp::from_micros(1_763_683_200_000_000);

#[derive(Deserialize)]
struct Gcra {
    emission: u64,
    burst: u64,
}

#[derive(Deserialize)]
struct Bucket {
    rate_per_s: u64,
    #[serde(alias = "cap")]
    burst: u64,
}

#[derive(Deserialize)]
struct Multi {
    limits: Vec<Limit>,
    #[serde(default)]
    t0: u64,
}

#[derive(Deserialize)]
struct Window {
    limit: u64,
    #[serde(alias = "duration")]
    window: u64,
    /// Units counted earlier, by the number of the window or by its start.
    #[serde(default)]
    seed: BTreeMap<String, u64>,
}

/// Returns the setups for a case, or the reason why the case has no setup.
pub(crate) fn setups(case: &Case) -> Result<Vec<Setup>, String> {
    let unit = micros_per(case.unit);
    let plain = |quota: Quota| Setup {
        limits: vec![quota],
        scale: unit,
        taken: Vec::new(),
    };
    match case.model.as_str() {
        "gcra" => {
            let Gcra { emission, burst } = read(&case.params)?;
            let quota = Quota::new(1, Duration::from_micros(emission * unit)).burst(burst);
            Ok(vec![plain(quota.gcra()), plain(quota)])
        }
        "token_bucket_continuous" | "token_bucket_reservation" => {
            let Bucket { rate_per_s, burst } = read(&case.params)?;
            let quota = Quota::per_second(rate_per_s).burst(burst);
            Ok(vec![plain(quota), plain(quota.gcra())])
        }
        "token_bucket_multi" => {
            let Multi { limits, t0 } = read(&case.params)?;
            let shortest = limits.iter().map(|limit| limit.period).min().unwrap_or(1);
            let scale = unit.max(1_000_u64.div_ceil(shortest));
            let mut setup = Setup {
                limits: Vec::new(),
                scale,
                taken: Vec::new(),
            };
            for (position, limit) in limits.iter().enumerate() {
                setup.limits.push(quota(limit, scale, t0)?);
                setup
                    .taken
                    .push((t0, position, limit.cap - limit.init.unwrap_or(limit.cap)));
            }
            Ok(vec![setup])
        }
        "leaky_bucket_meter" => {
            let window: Window = read(&case.params)?;
            Ok(vec![plain(window.quota(unit).leaky_bucket())])
        }
        "counter_reset" => {
            let window: Window = read(&case.params)?;
            Ok(vec![plain(
                window.quota(unit).fixed_window().from_first_request(),
            )])
        }
        "sliding_window_counter" => {
            let window: Window = read(&case.params)?;
            let taken = window.taken(window.window)?;
            Ok(vec![Setup {
                taken,
                ..plain(window.quota(unit).sliding_window())
            }])
        }
        "fixed_window" => {
            let window: Window = read(&case.params)?;
            Ok(vec![Setup {
                taken: window.taken(1)?,
                ..plain(window.quota(unit).fixed_window())
            }])
        }
        "moving_window_log" => {
            let window: Window = read(&case.params)?;
            Ok(vec![plain(window.quota(unit).sliding_log())])
        }
        other => Err(format!("no such model: {other}")),
    }
}

/// Returns the quota of a limit with a bucket that is full at `t0`, or a window that begins at `t0`.
pub(crate) fn quota(limit: &Limit, scale: u64, t0: u64) -> Result<Quota, String> {
    let refill = limit.refill.unwrap_or(limit.cap);
    let quota = Quota::new(refill, Duration::from_micros(limit.period * scale));
    match limit.kind {
        Refill::Greedy => Ok(quota.burst(limit.cap)),
        Refill::Interval if refill == limit.cap && limit.first.is_none() && !limit.adaptive => {
            let start = ORIGIN + Duration::from_micros(t0 * scale);
            let offset = start.as_micros() % (limit.period * scale);
            Ok(quota.fixed_window().offset(Duration::from_micros(offset)))
        }
        Refill::Interval => {
            Err("a bucket that is refilled in pieces smaller than itself".to_owned())
        }
    }
}

impl Setup {
    /// Returns the setup with all units multiplied by `times`, to observe fractions of a unit.
    pub(crate) fn with_multiplied_units(&self, times: u64) -> Self {
        let magnify = |quota: &Quota| {
            let larger = Quota::new(quota.units() * times, quota.period());
            match quota.algorithm() {
                Algorithm::SlidingWindow => larger.sliding_window(),
                other => panic!("nothing estimates a {other}"),
            }
        };
        Self {
            limits: self.limits.iter().map(magnify).collect(),
            scale: self.scale,
            taken: self
                .taken
                .iter()
                .map(|&(t, limit, units)| (t, limit, units * times))
                .collect(),
        }
    }
}

impl Window {
    fn quota(&self, unit: u64) -> Quota {
        Quota::new(self.limit, Duration::from_micros(self.window * unit))
    }

    /// Returns the units that the seed takes before the first step. The seed counts windows of `length`.
    fn taken(&self, length: u64) -> Result<Vec<(u64, usize, u64)>, String> {
        self.seed
            .iter()
            .map(|(number, &units)| {
                let number: u64 = number
                    .parse()
                    .map_err(|error| format!("{number}: {error}"))?;
                Ok((number * length, 0, units))
            })
            .collect()
    }
}

fn read<T: serde::de::DeserializeOwned>(params: &Value) -> Result<T, String> {
    T::deserialize(params).map_err(|error| error.to_string())
}

/// Returns the microseconds for a unit of time. A nanosecond becomes a microsecond.
const fn micros_per(unit: Unit) -> u64 {
    match unit {
        Unit::Ns => 1,
        Unit::Ms => 1_000,
        Unit::S => 1_000_000,
    }
}
