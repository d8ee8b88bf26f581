//! The answer of a call.

use core::time::Duration;

use tower_quota_core::{LimitStatus, Outcome, Quota, Timestamp};

use super::charges::Decided;
use super::plan::{Asked, Plan};
use crate::messages::ratelimit::RateLimitResponse;
use crate::messages::ratelimit::rate_limit_response::{Code, DescriptorStatus};

/// The wait that a refusal shows while the store fails.
const RETRY_OF_FAILURE: Duration = Duration::from_secs(1);

impl Plan<'_> {
    /// Returns the answer, with a status for each descriptor.
    pub(super) fn answer(&self, decided: &Decided) -> RateLimitResponse {
        let is_over = self.refuses(&decided.over) && !self.options.is_shadow;
        let statuses = self.asked.iter().map(|asked| asked.status(decided));
        let body = self.options.refusal_body.as_bytes();
        RateLimitResponse {
            overall_code: code(is_over).into(),
            statuses: statuses.collect(),
            raw_body: if is_over { body } else { &[] }.to_vec(),
            ..RateLimitResponse::default()
        }
    }

    /// Returns whether the call is over its limits, if these counters are over theirs.
    ///
    /// A call is over if a limit is, or if all limits of a quota mode are.
    pub(super) fn refuses(&self, over: &[bool]) -> bool {
        let (mut quotas, mut quotas_over) = (0, 0);
        for asked in &self.asked {
            let is_over = asked.is_over(over);
            if self.is_quota(asked) {
                quotas += 1;
                quotas_over += usize::from(is_over);
            } else if is_over {
                return true;
            }
        }
        quotas > 0 && quotas == quotas_over
    }

    /// Returns whether a descriptor counts with the others in quota mode.
    pub(super) fn is_quota(&self, asked: &Asked<'_>) -> bool {
        match asked.rule {
            Some(rule) => !rule.is_unlimited && (rule.is_quota || self.options.is_quota),
            None => self.options.is_quota,
        }
    }
}

impl Asked<'_> {
    /// Returns whether the descriptor exceeds its limit, if these counters exceed theirs.
    pub(super) fn is_over(&self, over: &[bool]) -> bool {
        let Some(rule) = self.rule else { return false };
        if rule.is_shadow || self.gives_back {
            return false;
        }
        match self.counter {
            Some(counter) => over.get(counter).is_some_and(|is_over| *is_over),
            None => self.hits > 0 && !rule.is_unlimited,
        }
    }

    fn status(&self, decided: &Decided) -> DescriptorStatus {
        let is_over = self.is_over(&decided.over);
        let mut status = DescriptorStatus {
            code: code(is_over).into(),
            ..DescriptorStatus::default()
        };
        let Some(rule) = self.rule else { return status };
        if rule.is_unlimited {
            status.limit_remaining = u32::MAX;
            return status;
        }
        if let Some((counter, quota)) = self.counter.zip(rule.quota.as_ref()) {
            let wait = if let Some(counted) = decided.statuses.get(counter) {
                status.limit_remaining = u32::try_from(counted.remaining()).unwrap_or(u32::MAX);
                wait(counted, quota, decided.at, is_over)
            } else if is_over {
                RETRY_OF_FAILURE
            } else {
                // Without the store, nobody knows what remains.
                return status;
            };
            status.duration_until_reset = Some(in_seconds(wait));
        }
        status.current_limit = Some(rule.shown.clone());
        status
    }
}

/// Returns the wait of an exceeded limit, or the time until a limit is full.
fn wait(status: &LimitStatus, quota: &Quota, at: Timestamp, is_over: bool) -> Duration {
    match status.outcome {
        Outcome::Refuse(retry) if is_over => retry,
        // All requests of a window get the same end, as envoyproxy/ratelimit shows it.
        _ => match quota.window_ends(at) {
            Some(end) => end.since(at),
            None => status.reset_after(),
        },
    }
}

/// Rounds up to seconds, because Envoy drops the fraction in header fields.
fn in_seconds(wait: Duration) -> prost_types::Duration {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    prost_types::Duration {
        seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
        nanos: 0,
    }
}

const fn code(is_over: bool) -> Code {
    match is_over {
        true => Code::OverLimit,
        false => Code::Ok,
    }
}
