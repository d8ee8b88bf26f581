//! Decides plain checks in the rows, with the same results as the model. A request may have any
//! limits, on one key or several.

use core::ptr;

use super::MemoryInner;
use super::evicted::Evicted;
use super::place::RowPlace;
use super::row::{Mark, Row};
use super::shard::{Context, Shard, find};
use crate::charge::Charge;
use crate::entry::TRUSTED_LEAD;
use crate::key::Key;
use crate::status::LimitStatus;

/// A charge of the request, judged on the count of its row.
#[derive(Clone, Copy, Default)]
pub(super) struct Judged {
    hash: u64,
    /// The position of the key among the places.
    key: usize,
    /// The position of the count in the row, or [`ABSENT`]. An option would take a word more.
    position: usize,
    before: u64,
    after: u64,
}

const ABSENT: usize = usize::MAX;
/// The most keys of a request that rows decide.
const MOST_KEYS: usize = 4;

#[derive(Clone, Copy)]
pub(super) struct Verdict {
    pub(super) now: u64,
    pub(super) is_admitted: bool,
}

/// The rows of the keys, in their locked shards.
struct Found<'s, const KEYS: usize> {
    rows: [Option<&'s mut Row>; KEYS],
    evicted: [Option<&'s Evicted>; KEYS],
    now: u64,
}

impl Judged {
    /// Returns whether the row of this key has no count of the limit.
    const fn is_absent_from(&self, hash: u64) -> bool {
        self.hash == hash && self.position == ABSENT
    }

    #[inline]
    pub(super) fn status(&self, charge: &Charge<'_>, verdict: Verdict) -> LimitStatus {
        let count = if verdict.is_admitted {
            self.after
        } else {
            self.before
        };
        charge.status(count, verdict.now, verdict.is_admitted)
    }
}

impl MemoryInner {
    /// Checks the charges in their rows. If the model has to decide, returns `None` without a charge.
    #[inline(always)]
    pub(super) fn check_rows(
        &self,
        charges: &[Charge<'_>],
        judged: &mut [Judged],
    ) -> Option<Verdict> {
        if !charges.iter().all(Charge::fits_row) {
            return None;
        }
        // Read the clock before the keys are hashed, because the processor does both at the same
        // time.
        let clock = self.time.now().as_micros();
        let mut hashes = [0; MOST_KEYS];
        let mut keys = 0;
        for (judged, hash) in judged.iter_mut().zip(self.hashes(charges)) {
            judged.hash = hash;
            if !hashes[..keys].contains(&hash) {
                *hashes.get_mut(keys)? = hash;
                keys += 1;
            }
        }
        // The number of keys is a constant in each arm, which unrolls the loops.
        match hashes[..keys] {
            [one] => self.check_keys([one], clock, charges, judged),
            [one, two] => self.check_keys([one, two], clock, charges, judged),
            [one, two, three] => self.check_keys([one, two, three], clock, charges, judged),
            // A gateway counts each descriptor by a key of its own.
            [one, two, three, four] => {
                self.check_keys([one, two, three, four], clock, charges, judged)
            }
            _ => None,
        }
    }

    pub(super) fn hashes<'a>(&'a self, charges: &'a [Charge<'a>]) -> impl Iterator<Item = u64> {
        let mut last: Option<(&Key<'_>, u64)> = None;
        charges.iter().map(move |charge| {
            // Hash a key once, because the charges of a client usually share one key.
            let hash = match last {
                Some((key, hash)) if ptr::eq(key, charge.key()) => hash,
                _ => self.hash(charge.key()),
            };
            last = Some((charge.key(), hash));
            hash
        })
    }

    #[inline(always)]
    fn check_keys<const KEYS: usize>(
        &self,
        hashes: [u64; KEYS],
        clock: u64,
        charges: &[Charge<'_>],
        judged: &mut [Judged],
    ) -> Option<Verdict> {
        let mut places = hashes.map(|hash| RowPlace {
            shard: self.shard_of(hash),
            hash,
        });
        places.sort_unstable_by_key(|place| place.shard);
        // The model decides a request with two keys in one shard.
        if places.windows(2).any(|pair| pair[0].shard == pair[1].shard) {
            return None;
        }
        // The places ascend, so two requests never wait for each other.
        let mut shards = [const { None }; KEYS];
        let mut found = Found {
            rows: [const { None }; KEYS],
            evicted: [None; KEYS],
            now: clock,
        };
        for (key, shard) in shards.iter_mut().enumerate() {
            let place = places[key];
            let shard = shard.insert(self.shards[place.shard].0.lock());
            found.find(key, shard, place.hash);
        }
        // The model decides whether to trust a row that is far ahead of the clock.
        if found.now > clock.saturating_add(TRUSTED_LEAD) {
            return None;
        }
        if KEYS > 1 {
            for judged in judged.iter_mut() {
                judged.key = places.iter().position(|place| place.hash == judged.hash)?;
            }
        }
        let verdict = Verdict {
            now: found.now,
            is_admitted: found.judge(charges, judged)?,
        };
        let is_complete = if verdict.is_admitted {
            found.charge(judged)
        } else {
            found.mark_refused(charges, judged);
            [true; KEYS]
        };
        // Unlock from the last shard on. The last one may belong to `Key::EVERYONE`, for which most
        // threads wait.
        for key in (0..KEYS).rev() {
            let mut shard = shards[key].take()?;
            if !is_complete[key] {
                let context = Context {
                    now: verdict.now,
                    capacity: self.capacity_of(places[key].shard),
                    together: &places,
                };
                let hash = places[key].hash;
                let absent = charges.iter().zip(&*judged);
                let absent = absent.filter(|(_, judged)| judged.is_absent_from(hash));
                let absent = absent.map(|(charge, judged)| (charge.rate_counter(), judged.after));
                shard.complete(hash, absent, &context);
            }
        }
        Some(verdict)
    }
}

impl<'s, const KEYS: usize> Found<'s, KEYS> {
    #[inline(always)]
    fn find(&mut self, key: usize, shard: &'s mut Shard, hash: u64) {
        self.evicted[key] = shard.evicted.as_deref();
        self.rows[key] = find(&mut shard.everyone, &mut shard.rows, hash);
        if let Some(row) = &self.rows[key] {
            self.now = self.now.max(row.at());
        }
    }

    /// Judges the charges. Returns whether all fit, or `None` if the model has to decide.
    #[inline(always)]
    fn judge(&self, charges: &[Charge<'_>], judged: &mut [Judged]) -> Option<bool> {
        let now = self.now;
        let mut is_admitted = true;
        for (number, charge) in charges.iter().enumerate() {
            let (earlier, rest) = judged.split_at_mut(number);
            let judged = rest.first_mut()?;
            let key = Self::key(judged);
            let limit = charge.rate_counter().id;
            // The model decides a request with two charges of a limit.
            let mut earlier = charges.iter().zip(earlier);
            if earlier
                .any(|(other, earlier)| earlier.key == key && other.rate_counter().id == limit)
            {
                return None;
            }
            (judged.position, judged.before) = match &self.rows[key] {
                Some(row) => read(row, charge, now)?,
                None => (ABSENT, 0),
            };
            if judged.position == ABSENT
                && let Some(evicted) = self.evicted[key]
                && evicted.filter.until((judged.hash, limit), now).is_some()
            {
                return None;
            }
            if charge.fits(judged.before, now) {
                judged.after = charge.added(judged.before, now)?;
            } else {
                is_admitted = false;
            }
        }
        Some(is_admitted)
    }

    #[inline(always)]
    fn mark_refused(&mut self, charges: &[Charge<'_>], judged: &[Judged]) {
        for (charge, judged) in charges.iter().zip(judged) {
            // A cost above the capacity never fits, and says nothing about the client.
            if charge.units() <= charge.quota().capacity()
                && !charge.fits(judged.before, self.now)
                && let Some(row) = self.rows[Self::key(judged)].take()
            {
                row.mark(Mark::Refused);
            }
        }
    }

    /// Charges the counts of the rows. Returns for each key whether the row has all counts.
    #[inline(always)]
    fn charge(&mut self, judged: &[Judged]) -> [bool; KEYS] {
        for row in self.rows.iter_mut().flatten() {
            row.advance(self.now);
            row.mark(Mark::Charged);
        }
        let mut is_complete = [true; KEYS];
        for judged in judged {
            let key = Self::key(judged);
            let counts = self.rows[key].as_mut().map(|row| row.counts_mut());
            match counts.and_then(|counts| counts.get_mut(judged.position)) {
                Some(count) => count.value = judged.after,
                None => is_complete[key] = false,
            }
        }
        is_complete
    }

    /// Returns the position of the key, as a constant if there is a single key.
    const fn key(judged: &Judged) -> usize {
        if KEYS == 1 { 0 } else { judged.key }
    }
}

/// Returns the position and the count of a limit in a row. If the model has to decide, returns `None`.
#[inline(always)]
fn read(row: &Row, charge: &Charge<'_>, now: u64) -> Option<(usize, u64)> {
    if row.entry().is_some() {
        return None;
    }
    let counter = charge.rate_counter();
    let mut counts = row.counts().iter().enumerate();
    let Some((position, count)) = counts.find(|(_, count)| count.definition.limit == counter.id)
    else {
        return Some((ABSENT, 0));
    };
    let value = count.value_at(row.at(), now);
    if count.definition.is_of(counter) {
        return Some((position, value));
    }
    // An unused limit needs no conversion, because it is full by any quota.
    (value == 0).then_some((ABSENT, 0))
}
