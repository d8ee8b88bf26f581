//! The known limits of a bucket, which are read without a lock.

use std::sync::OnceLock;

use super::entry::{KnownLimit, WORDS};
use super::view::Tag;
use crate::sync::SequenceLock;

/// The entries of a bucket.
pub(super) const WAYS: usize = 8;

/// The entries of a bucket. They are changed by one thread at a time, and read by any number.
#[derive(Default)]
pub(super) struct KnownLimits(OnceLock<Box<[Place; WAYS]>>);

/// A place for an entry, in lines of its own. All words are zero while it is free.
#[repr(align(128))]
struct Place(SequenceLock<WORDS>);

/// No client's limit has this tag, but by a chance of 1 in 2^128.
const FREE: Tag = [0; 2];

/// An entry was being changed while it was read.
#[derive(Debug)]
pub(super) struct Changing;

impl KnownLimits {
    /// Returns the entry of a tag, unless it is being changed.
    #[inline]
    pub(super) fn find(&self, tag: Tag) -> Result<Option<KnownLimit>, Changing> {
        let Some(entries) = self.0.get() else {
            return Ok(None);
        };
        for Place(entry) in entries.iter() {
            let known = entry
                .read(|words| KnownLimit::of_words(tag, words))
                .ok_or(Changing)?;
            if known.is_some() {
                return Ok(known);
            }
        }
        Ok(None)
    }

    /// Returns the entry of a tag, to the one thread that may change it.
    pub(super) fn get(&self, tag: Tag) -> Option<KnownLimit> {
        self.find(tag).unwrap_or_default()
    }

    /// Writes the entry of a limit: over the one that has its tag, into a free place, or over that of the lowest rank.
    ///
    /// A mere status takes the place of no refusal. Returns the entry of another limit that has given way.
    pub(super) fn put(&self, fresh: &KnownLimit, now: u64) -> Option<KnownLimit> {
        let entries = self
            .0
            .get_or_init(|| Box::new(core::array::from_fn(|_| Place(SequenceLock::new()))));
        let tagged = |tag| entries.iter().find(move |entry| entry.tag() == tag);
        if let Some(place) = tagged(fresh.tag).or_else(|| tagged(FREE)) {
            place.0.replace(fresh.words());
            return None;
        }
        let known = entries
            .iter()
            .filter_map(|entry| Some((entry, KnownLimit::of_words(entry.tag(), entry.0.words())?)));
        let (place, oldest) = known.min_by_key(|(_, known)| known.rank(now))?;
        if oldest.is_refusal_at(now) && !fresh.is_refusal_at(now) {
            return None;
        }
        place.0.replace(fresh.words());
        Some(oldest)
    }

    /// Frees the place of a tag.
    pub(super) fn remove(&self, tag: Tag) {
        let entry = self
            .0
            .get()
            .and_then(|entries| entries.iter().find(|entry| entry.tag() == tag));
        if let Some(entry) = entry {
            entry.0.replace([0; WORDS]);
        }
    }
}

impl Place {
    fn tag(&self) -> Tag {
        let words = self.0.words();
        [words.get(0), words.get(1)]
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::charge::{Charge, Operation};
    use crate::decision::Decision;
    use crate::key::Key;
    use crate::key_hasher::KeyHasher;
    use crate::name::Name;
    use crate::outcome::Outcome;
    use crate::quota::Quota;
    use crate::refusals::view::views;
    use crate::status::{Left, LimitStatus};
    use crate::time::Timestamp;

    /// Replaces, removes and evicts entries while they are read, with more limits than a bucket has places.
    #[test]
    fn readers_find_complete_entries() {
        const READINGS: usize = if cfg!(miri) { 20 } else { 20_000 };
        let (quota, hasher) = (Quota::per_minute(6), KeyHasher::random());
        let of = |number| {
            views(
                &[Charge::new(
                    "minute",
                    &quota,
                    &Key::number(Name::new("client"), number),
                )],
                &hasher,
            )[0]
        };
        let views: Vec<_> = (0..12).map(of).collect();
        let entry = |view, sent| {
            let outcome = Outcome::Refuse(Duration::from_micros(7));
            let left = Left::new(0, Duration::from_micros(9));
            let status = LimitStatus {
                name: Name::new("minute"),
                limit: 6,
                left,
                taken: 0,
                outcome,
                is_shadow: false,
            };
            let decision =
                Decision::from_statuses(Operation::Check, Timestamp::from_micros(sent), [status]);
            KnownLimit::new(view, &status, &decision, sent)
        };
        let known = KnownLimits::default();
        let read_many = || {
            let found = views
                .iter()
                .cycle()
                .filter_map(|view| Some((view, known.find(view.tag).ok()??)));
            for (view, found) in found.take(READINGS) {
                assert_eq!(
                    (found.tag, found.until, found.called),
                    (view.tag, found.sent + 7, found.sent)
                );
            }
        };
        std::thread::scope(|threads| {
            let readers = [threads.spawn(read_many), threads.spawn(read_many)];
            let mut changes = (1..).zip(views.iter().cycle());
            while !readers.iter().all(|reader| reader.is_finished()) {
                let Some((sent, view)) = changes.next() else {
                    break;
                };
                known.put(&entry(view, sent), sent);
                if sent % 5 == 0 {
                    known.remove(view.tag);
                }
            }
        });
    }
}
