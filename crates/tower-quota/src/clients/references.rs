//! References of refusals, with which support finds the decision about one request.

use core::fmt::Write;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tower_quota_core::{Key, LimitStatus, Name};

use super::LONGEST_KEY;

/// The number of random characters at the end of a reference.
const RANDOM_DIGITS: usize = 13;

/// The latest refusals of a process, each found by its reference.
#[derive(Debug, Default)]
pub(crate) struct References(Mutex<VecDeque<RefusalRecord>>);

/// A refusal as a process remembers it: see [`RateLimitLayer::refusal_references`].
///
/// [`RateLimitLayer::refusal_references`]: crate::RateLimitLayer::refusal_references
#[derive(Clone, Debug)]
pub struct RefusalRecord {
    pub(crate) reference: Box<str>,
    pub(crate) label: &'static str,
    pub(crate) status: Option<LimitStatus>,
    pub(crate) key: Option<Key<'static>>,
    pub(crate) policy_version: Option<u64>,
    pub(crate) is_degraded: bool,
    pub(crate) at: Instant,
}

impl References {
    /// Remembers a refusal. The oldest gives way.
    pub(crate) fn insert(&self, mut record: RefusalRecord) {
        record.key = record.key.filter(|key| key.as_bytes().len() <= LONGEST_KEY);
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |oldest: &RefusalRecord| {
            record.at.saturating_duration_since(oldest.at) > RefusalRecord::LONGEST_AGE
        };
        while records.len() >= RefusalRecord::MOST || records.front().is_some_and(is_old) {
            records.pop_front();
        }
        records.push_back(record);
    }

    /// Finds a refusal that is remembered at this instant.
    pub(crate) fn find(&self, reference: &str, now: Instant) -> Option<RefusalRecord> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let record = records
            .iter()
            .rev()
            .find(|record| &*record.reference == reference)?;
        (now.saturating_duration_since(record.at) <= RefusalRecord::LONGEST_AGE)
            .then(|| record.clone())
    }
}

impl RefusalRecord {
    /// The most refusals that a process remembers: the latest 10,000.
    pub const MOST: usize = 10_000;

    /// The time after which a refusal is forgotten: an hour.
    pub const LONGEST_AGE: Duration = Duration::from_secs(3_600);

    /// Returns the reference: the instance, a dash, and 13 random characters.
    #[must_use]
    pub const fn reference(&self) -> &str {
        &self.reference
    }

    /// Returns the name of the instance that refused, with which its reference begins.
    #[must_use]
    pub fn instance(&self) -> &str {
        Self::instance_of(&self.reference).unwrap_or_default()
    }

    /// Returns the name of the instance with which a reference begins.
    ///
    /// Another process than this one may remember the refusal.
    ///
    /// ```
    /// use tower_quota::RefusalRecord;
    ///
    /// assert_eq!(RefusalRecord::instance_of("pod-7-0d3kz5xq8w1fe"), Some("pod-7"));
    /// assert_eq!(RefusalRecord::instance_of("pod-7"), None);
    /// ```
    #[must_use]
    pub fn instance_of(reference: &str) -> Option<&str> {
        let (instance, random) = reference.rsplit_once('-')?;
        (random.len() == RANDOM_DIGITS && !instance.is_empty()).then_some(instance)
    }

    /// Returns the reason in one word, as [`Decided::label`](crate::Decided::label) does.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        self.label
    }

    /// Returns the limit that refused, with what was left; `None` if no limit was evaluated.
    #[must_use]
    pub const fn status(&self) -> Option<&LimitStatus> {
        self.status.as_ref()
    }

    /// Returns the key by which this limit counted the client. It may be a secret.
    #[must_use]
    pub const fn key(&self) -> Option<&Key<'static>> {
        self.key.as_ref()
    }

    /// Returns the [version](crate::Policy::version) of the policy that refused, if it has one.
    #[must_use]
    pub const fn policy_version(&self) -> Option<u64> {
        self.policy_version
    }

    /// Returns whether the request was refused without the store.
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.is_degraded
    }

    /// Returns the time that has passed since the refusal.
    #[must_use]
    pub fn age(&self) -> Duration {
        super::now().saturating_duration_since(self.at)
    }
}

/// Returns a new reference of an instance: 13 random digits of Crockford's base 32, 65 bits.
pub(crate) fn reference(instance: Name) -> Box<str> {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut text = String::with_capacity(instance.as_str().len() + 1 + RANDOM_DIGITS);
    _ = write!(text, "{instance}-");
    text.extend((0..RANDOM_DIGITS).map(|_| char::from(DIGITS[fastrand::usize(..DIGITS.len())])));
    text.into_boxed_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(reference: &str, at: Instant) -> RefusalRecord {
        RefusalRecord {
            reference: reference.into(),
            label: "refused",
            status: None,
            key: Some(Key::owned(Name::new("key"), vec![b'k'; LONGEST_KEY + 1])),
            policy_version: None,
            is_degraded: false,
            at,
        }
    }

    #[test]
    fn refusals_end_with_their_hour() {
        let (references, start) = (References::default(), crate::clients::now());
        references.insert(record("a", start));
        references.insert(record("b", start + Duration::from_secs(1)));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(
            references
                .find("a", at(3_600))
                .is_some_and(|record| record.key().is_none())
        );
        assert!(references.find("a", at(3_601)).is_none());
        assert!(references.find("b", at(3_601)).is_some());
    }

    #[test]
    fn oldest_refusals_give_way() {
        let (references, now) = (References::default(), crate::clients::now());
        for number in 0..=RefusalRecord::MOST {
            references.insert(record(&number.to_string(), now));
        }
        assert!(references.find("0", now).is_none());
        assert!(references.find("1", now).is_some());
    }

    #[test]
    fn references_name_their_instance() {
        let [one, other] = [(); 2].map(|()| reference(Name::new("pod-7")));
        assert_ne!(one, other);
        assert_eq!(one.len(), "pod-7-".len() + 13);
        assert!(one.starts_with("pod-7-"));
    }
}
