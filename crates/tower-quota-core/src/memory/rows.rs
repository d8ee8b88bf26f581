//! Plain checks, decided in rows: any limits, in any order, of one key or several.
//!
//! The decision is the model's. A request that rows cannot express is left to the model.

use super::Inner;
use super::evicted::Evicted;
use super::keys::Place;
use super::row::{Content, Count, Mark, Row};
use super::shard::{Context, Shard};
use crate::algorithm::State;
use crate::charge::Charge;
use crate::decision::Decision;
use crate::entry::TRUSTED_LEAD;
use crate::key::Key;
use crate::outcome::Outcome;
use crate::status::LimitStatus;
use crate::sync::locked;
use crate::time::Timestamp;

/// A charge of the request, and what the row of its key says.
#[derive(Clone, Copy, Default)]
struct Judged {
    /// The count now.
    count: u64,
    /// The count with the charge.
    after: u64,
    /// The position of its key.
    key: u8,
    stored: Stored,
}

/// How the row counts the limit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stored {
    /// Not at all.
    #[default]
    No,
    /// At this position, by the charge's quota.
    At(u8),
    ByOtherQuota,
}

/// A request of `N` charges while it is decided. The number is a constant, so that no loop needs a counter.
pub(super) struct Request<'r, const N: usize> {
    store: &'r Inner,
    charges: &'r [Charge<'r>; N],
    judged: [Judged; N],
    /// The keys, in the order of their shards.
    places: [Place; N],
    keys: usize,
    now: u64,
    is_admitted: bool,
}

/// The verdict of the limits of some keys.
enum Verdict {
    Admitted,
    Refused,
    /// A row was changed later than the clock says. The request is decided again, at this instant.
    Later(u64),
    /// The model has to decide.
    Unknown,
}

impl Inner {
    /// Checks charges in their rows. Returns `None`, and changes nothing, if the model has to decide.
    pub(super) fn check_rows<'r, const N: usize>(
        &'r self,
        charges: &'r [Charge<'r>; N],
    ) -> Option<Request<'r, N>> {
        if !charges.iter().all(Charge::fits_row) {
            return None;
        }
        let mut request = Request {
            store: self,
            charges,
            judged: [Judged::default(); N],
            places: [Place::default(); N],
            keys: 0,
            now: 0,
            is_admitted: false,
        };
        if !request.find_keys() {
            return None;
        }
        let clock = self.time.now().as_micros();
        request.now = clock;
        loop {
            match request.decide(0, true) {
                Verdict::Admitted => request.is_admitted = true,
                Verdict::Refused => {}
                // The model knows whether a row that is far ahead of the clock can be true.
                Verdict::Later(at) if at <= clock.saturating_add(TRUSTED_LEAD) => {
                    request.now = at;
                    continue;
                }
                Verdict::Later(_) | Verdict::Unknown => return None,
            }
            return Some(request);
        }
    }
}

impl<const N: usize> Request<'_, N> {
    /// Finds the keys of all charges. Returns `false` if two are in one shard.
    fn find_keys(&mut self) -> bool {
        let mut last: Option<&Key<'_>> = None;
        for (position, charge) in self.charges.iter().enumerate() {
            // The charges of one client share its key, which is hashed once.
            if last.is_some_and(|last| core::ptr::eq(last, charge.key())) {
                self.judged[position].key = self.judged[position - 1].key;
                continue;
            }
            last = Some(charge.key());
            let hash = self.store.hash(charge.key());
            let shard = self.store.shard_of(hash);
            let mut key = 0;
            while key < self.keys && self.places[key].shard < shard {
                key += 1;
            }
            let is_known = key < self.keys && self.places[key].shard == shard;
            if is_known && self.places[key].hash != hash {
                return false;
            }
            if !is_known {
                self.insert_key(key, Place { shard, hash });
            }
            self.judged[position].key = u8::try_from(key).unwrap_or(u8::MAX);
        }
        true
    }

    /// Inserts a key before those of later shards.
    fn insert_key(&mut self, key: usize, place: Place) {
        if key < self.keys {
            self.places[key..=self.keys].rotate_right(1);
            for judged in &mut self.judged {
                judged.key += u8::from(usize::from(judged.key) >= key);
            }
        }
        self.places[key] = place;
        self.keys += 1;
    }

    /// Decides the charges of a key and of those after it. `is_admitted` says whether those before it fit.
    ///
    /// The shard of each key stays locked until all of them are decided. Shards are locked in their order, so that two
    /// requests never wait for each other. The shard of [`Key::EVERYONE`], which every request may need, is the last
    /// one, and is locked for the shortest time.
    fn decide(&mut self, key: usize, mut is_admitted: bool) -> Verdict {
        let Place { shard, hash } = self.places[key];
        let mut guard = locked(&self.store.shards[shard].0);
        let shard = &mut *guard;
        let row = shard.rows.find_mut(hash, |row| row.hash == hash);
        if let Some(row) = &row
            && row.at() > self.now
        {
            return Verdict::Later(row.at());
        }
        match self.judge(key, row.as_deref(), shard.evicted.as_deref()) {
            Some(fits) => is_admitted &= fits,
            None => return Verdict::Unknown,
        }
        if key + 1 < self.keys {
            match self.decide(key + 1, is_admitted) {
                Verdict::Admitted => {}
                Verdict::Refused => is_admitted = false,
                other => return other,
            }
        }
        if !is_admitted {
            return self.refuse(key, row);
        }
        let is_complete = row.is_some_and(|row| self.take(key, row));
        if !is_complete {
            self.complete(key, shard);
        }
        Verdict::Admitted
    }

    /// Reads the counts of a key's charges, and returns whether they fit. Returns `None` if the model has to decide.
    fn judge(&mut self, key: usize, row: Option<&Row>, evicted: Option<&Evicted>) -> Option<bool> {
        let mut fits = true;
        for (position, charge) in self.charges.iter().enumerate() {
            if usize::from(self.judged[position].key) != key {
                continue;
            }
            let limit = charge.counter().id;
            // The model counts a limit that the request has twice.
            for (other, judged) in self.charges[..position].iter().zip(&self.judged) {
                if usize::from(judged.key) == key && other.counter().id == limit {
                    return None;
                }
            }
            let (count, stored) = match row {
                Some(row) => read(row, charge, self.now)?,
                None => (0, Stored::No),
            };
            if stored == Stored::No
                && let Some(evicted) = evicted
                && evicted
                    .filter
                    .until((self.places[key].hash, limit), self.now)
                    .is_some()
            {
                return None;
            }
            let judged = &mut self.judged[position];
            judged.count = count;
            judged.stored = stored;
            if charge.fits(count, self.now) {
                judged.after = charge.added(count, self.now)?;
            } else {
                fits = false;
            }
        }
        Some(fits)
    }

    /// Writes the counts of an admitted request into a row. Returns whether the row has all of its limits.
    fn take(&self, key: usize, row: &mut Row) -> bool {
        let at = row.at();
        let own = self
            .judged
            .iter()
            .filter(|judged| usize::from(judged.key) == key);
        let stored = own
            .clone()
            .filter(|judged| matches!(judged.stored, Stored::At(_)));
        let is_complete = stored.clone().count() == own.count();
        let counts = row.counts_mut();
        if at < self.now && counts.len() > stored.clone().count() {
            for count in &mut *counts {
                count.value = count.value_at(at, self.now);
            }
        }
        for judged in stored {
            if let Stored::At(position) = judged.stored {
                counts[usize::from(position)].value = judged.after;
            }
        }
        row.set_at(self.now);
        row.mark(Mark::Charged);
        is_complete
    }

    /// Adds limits that a row does not count yet, or counts by another quota. Adds the row if there is none.
    #[cold]
    fn complete(&self, key: usize, shard: &mut Shard) {
        let mut added = Vec::new();
        for (charge, judged) in self.charges.iter().zip(&self.judged) {
            if usize::from(judged.key) == key && !matches!(judged.stored, Stored::At(_)) {
                added.push(shard.count(charge.counter(), judged.after));
            }
        }
        let Place {
            shard: number,
            hash,
        } = self.places[key];
        let Some(row) = shard.row_mut(hash) else {
            let context = Context {
                now: self.now,
                capacity: self.store.capacity_of(number),
                together: &self.places[..self.keys],
            };
            return shard.insert(hash, Content::of(added), Mark::Charged, &context);
        };
        let mut counts = row.counts().to_vec();
        let is_replaced = |limit| {
            added
                .iter()
                .any(|count: &Count| count.definition.limit == limit)
        };
        counts.retain(|count| count.value > 0 && !is_replaced(count.definition.limit));
        counts.append(&mut added);
        row.content = Content::of(counts);
    }

    /// Marks the row of a refused request.
    fn refuse(&self, key: usize, row: Option<&mut Row>) -> Verdict {
        let Some(row) = row else {
            return Verdict::Refused;
        };
        let mut mark = Mark::Neither;
        for (charge, judged) in self.charges.iter().zip(&self.judged) {
            if usize::from(judged.key) != key {
                continue;
            }
            if judged.stored == Stored::ByOtherQuota {
                // The model converts the row also for a refused request.
                return Verdict::Unknown;
            }
            if matches!(charge.outcome(judged.count, self.now), Outcome::Refuse(_)) {
                mark = Mark::Refused;
            }
        }
        row.mark(mark);
        Verdict::Refused
    }

    /// Writes the decision.
    pub(super) fn conclude(&self, decision: &mut Decision) {
        let statuses = (0..N).map(|position| self.status(position));
        decision.replace(self.is_admitted, Timestamp::from_micros(self.now), statuses);
    }

    /// Returns the status of a limit.
    pub(super) fn status(&self, position: usize) -> LimitStatus {
        let charge = &self.charges[position];
        let judged = &self.judged[position];
        if self.is_admitted {
            return charge.status(judged.after, self.now, charge.units(), Outcome::Allow);
        }
        let outcome = charge.outcome(judged.count, self.now);
        charge.status(judged.count, self.now, 0, outcome)
    }
}

/// Returns the count of a charge's limit, by the charge's quota. Returns `None` if the model has to decide.
#[inline]
fn read(row: &Row, charge: &Charge<'_>, now: u64) -> Option<(u64, Stored)> {
    if matches!(row.content, Content::Model(_)) {
        return None;
    }
    let counter = charge.counter();
    for (position, count) in row.counts().iter().enumerate() {
        if count.definition.limit != counter.id {
            continue;
        }
        let value = count.value_at(row.at(), now);
        if count.definition.is_of(counter) {
            return Some((value, Stored::At(u8::try_from(position).ok()?)));
        }
        if value == 0 {
            // A limit of which nothing is used is the same by any quota.
            return Some((0, Stored::No));
        }
        let old = &count.definition.quota;
        let converted = State::unpacked(value, old, now).convert(old, counter.quota, now);
        return Some((converted.packed(counter.quota, now)?, Stored::ByOtherQuota));
    }
    Some((0, Stored::No))
}
