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
        let Some(entries) = self.0.get() else { return Ok(None) };
        for Place(entry) in entries.iter() {
            let known = entry.read(|words| KnownLimit::of_words(tag, words)).ok_or(Changing)?;
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
    /// Returns the entry of another limit that has given way.
    pub(super) fn put(&self, fresh: &KnownLimit, now: u64) -> Option<KnownLimit> {
        let entries = self.0.get_or_init(|| Box::new(core::array::from_fn(|_| Place(SequenceLock::new()))));
        let tagged = |tag| entries.iter().find(move |entry| entry.tag() == tag);
        if let Some(place) = tagged(fresh.tag).or_else(|| tagged(FREE)) {
            place.0.replace(fresh.words());
            return None;
        }
        let known =
            entries.iter().filter_map(|entry| Some((entry, KnownLimit::of_words(entry.tag(), entry.0.words())?)));
        let (place, oldest) = known.min_by_key(|(_, known)| known.rank(now))?;
        place.0.replace(fresh.words());
        Some(oldest)
    }

    /// Frees the place of a tag.
    pub(super) fn remove(&self, tag: Tag) {
        let entry = self.0.get().and_then(|entries| entries.iter().find(|entry| entry.tag() == tag));
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
