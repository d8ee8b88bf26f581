//! Plain checks of any limits of any keys.
//!
//! Rows that count all limits of the request are changed in place, whatever their order and quotas. Other rows are decided
//! on drafts.

use smallvec::SmallVec;

use super::Inner;
use super::check::{Others, conclude};
use super::draft::{Draft, DraftCharge};
use super::filter::EvictedFilter;
use super::insert::WriteContext;
use super::place::{KeyPlace, Keys};
use super::row::{Count, Mark, NARROW, RowMut, WIDE};
use super::table::{Buckets, Table, row_of};
use crate::algorithm::bucket;
use crate::charge::{Charge, Operation};
use crate::decision::Decision;
use crate::entry::TRUSTED_LEAD;
use crate::statuses::Statuses;
use crate::sync::locked;
use crate::time::Timestamp;

/// The attempts to decide in rows, while other threads change them or take them away.
const MOST_ATTEMPTS: usize = 4;
/// The most charges that are decided on drafts.
const MOST_CHARGES: usize = 8;

impl Inner {
    /// Checks `N` charges of any keys.
    #[inline(never)]
    pub(super) fn check_several<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) {
        if !charges.iter().all(|charge| charge.is_plain()) || self.check_rows(charges, decision).is_none() {
            self.check_at_length(charges, decision);
        }
    }

    /// Makes the decision in the rows of the keys, where new keys get rows of full limits.
    ///
    /// Does nothing when a row does not count all of its limits, or when two of the keys are in one table.
    #[inline]
    fn check_rows<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) -> Option<()> {
        let (mut keys, mut count) = ([KeyPart::default(); N], 0);
        for (limit, charge) in charges.into_iter().enumerate() {
            let is_same = |key: &KeyPart| core::ptr::eq(charges[key.first()].key(), charge.key());
            let key = keys[..count].iter().position(is_same).unwrap_or(count);
            if key == count {
                let hash = self.seed.hash(charge.key());
                let number = self.table_of(hash);
                self.prefetches[number].fetch::<NARROW>(hash);
                keys[key] = KeyPart { hash, number, limits: 0 };
                count += 1;
            }
            keys[key].limits |= 1 << limit;
        }
        let keys = &mut keys[..count];
        // In the order of their tables, so that two requests never wait for each other.
        for last in 1..count {
            let mut key = last;
            while key > 0 && keys[key - 1].number > keys[key].number {
                keys.swap(key - 1, key);
                key -= 1;
            }
        }
        if keys.windows(2).any(|pair| pair[0].number == pair[1].number) {
            return None;
        }
        let clock = self.time.now().as_micros();
        let (mut request, mut used) = (RowsRequest { inner: self, charges, keys, now: clock }, [0; N]);
        for _ in 0..MOST_ATTEMPTS {
            match request.decide(0, Judged::default(), &mut used)? {
                Verdict::Admitted => {
                    let statuses = Statuses::from_fn(N, |limit| charges[limit].admitted(used[limit]));
                    decision.admit(Timestamp::from_micros(request.now), statuses);
                    return Some(());
                }
                Verdict::Refused => {
                    conclude(decision, request.now, false, N, |limit| (charges[limit], used[limit]));
                    return Some(());
                }
                Verdict::Ahead(at) if at - clock <= TRUSTED_LEAD => request.now = at,
                Verdict::Ahead(_) => return None,
                Verdict::NeedsRows => {}
            }
        }
        None
    }

    /// Checks charges of which a row does not count some limit.
    #[cold]
    #[inline(never)]
    pub(super) fn check_at_length<const N: usize>(&self, charges: [&Charge<'_>; N], decision: &mut Decision) {
        self.check_keys(&charges.map(|charge| *charge), decision);
    }

    /// Checks any number of charges of any keys.
    pub(super) fn check_keys(&self, charges: &[Charge<'_>], decision: &mut Decision) {
        if charges.len() > MOST_CHARGES
            || !charges.iter().all(Charge::is_plain)
            || self.check_drafts(charges, decision).is_none()
        {
            *decision = self.decide_by_model(Operation::Check, charges);
        }
    }

    /// Makes the decision on drafts, or does nothing if the model has to decide.
    fn check_drafts(&self, charges: &[Charge<'_>], decision: &mut Decision) -> Option<()> {
        let Keys { mut places, of } = self.keys_of(charges);
        let clock = self.time.now().as_micros();
        let mut tables = self.lock(&mut places);
        let mut now = clock;
        for place in &mut places {
            let table = &mut *tables[place.guard];
            place.row = table.find_trusted(place.hash, clock, self.capacity_of(place.table));
            now = now.max(place.row.map_or(0, |row| table.row(row).at()));
        }
        let drafts = places.iter().map(|place| Draft::new(place.hash, place.row));
        let mut drafts: SmallVec<[Draft; 2]> = drafts.collect();
        for (draft, place) in drafts.iter_mut().zip(&places) {
            draft.load(&tables[place.guard], now)?;
        }
        let (mut asked, mut is_admitted) = ([DraftCharge::default(); MOST_CHARGES], true);
        for ((charge, &key), asked) in charges.iter().zip(&of).zip(&mut asked) {
            drafts[key].judge(&mut tables[places[key].guard], charge, now, asked)?;
            is_admitted &= bucket::holds(charge.quota(), asked.used, charge.units());
        }
        if is_admitted {
            let taken = charges.iter().zip(&of).zip(&mut asked);
            taken.for_each(|((charge, &key), asked)| drafts[key].take(charge, asked));
        }
        for (draft, place) in drafts.iter().zip(&places) {
            let context = WriteContext { now, capacity: self.capacity_of(place.table), together: &places };
            draft.write(&mut tables[place.guard], is_admitted, &context);
        }
        // Last, because the drafts hold numbers.
        places.iter().for_each(|place| self.finish(place.table, &mut tables[place.guard]));
        drop(tables);
        conclude(decision, now, is_admitted, charges.len(), |limit| (&charges[limit], asked[limit].used));
        Some(())
    }
}

/// A request whose keys are in tables of their own.
struct RowsRequest<'a, const N: usize> {
    inner: &'a Inner,
    charges: [&'a Charge<'a>; N],
    /// In the order of their tables.
    keys: &'a [KeyPart],
    now: u64,
}

/// A key of a request.
#[derive(Clone, Copy, Default)]
struct KeyPart {
    hash: u64,
    /// The number of its table.
    number: usize,
    /// Its limits, a bit for each charge.
    limits: u32,
}

impl KeyPart {
    /// Returns its first charge.
    const fn first(self) -> usize {
        self.limits.trailing_zeros() as usize
    }
}

/// The keys that were judged so far.
#[derive(Clone, Copy, Default)]
struct Judged {
    is_refused: bool,
    /// Says whether a count has to be converted to another quota.
    is_converted: bool,
    /// Says whether a key has no row yet.
    has_new: bool,
}

/// The decision on all keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Admitted,
    Refused,
    /// New keys must get rows, after which the request is decided like others.
    NeedsRows,
    /// A row is of this instant, after the request's: another thread was faster. The request has to be decided as of it.
    Ahead(u64),
}

impl<const N: usize> RowsRequest<'_, N> {
    /// Judges the keys from this one on, and changes their rows by the decision on all of them.
    ///
    /// Each key is judged before the next one is locked, and changed once the last one was judged. The rows then count by
    /// the charges' quotas. `used` gets the grains used of each limit, with the charges if these are admitted. Returns
    /// `None`, and has changed nothing, when a row does not count all of its limits, and for a refusal that changes a quota.
    fn decide(&self, key: usize, mut judged: Judged, used: &mut [u64; N]) -> Option<Verdict> {
        let Some(part) = self.keys.get(key) else { return judged.verdict() };
        let mut table = locked(&self.inner.tables[part.number].0);
        let table = &mut *table;
        let words = match &mut table.buckets {
            Buckets::Narrow(buckets) => row_of(buckets, part.hash).map(<[u64; NARROW]>::as_mut_slice),
            Buckets::Wide(buckets) => row_of(buckets, part.hash).map(<[u64; WIDE]>::as_mut_slice),
        };
        let Some(words) = words else { return self.decide_new(key, judged, used, table) };
        let (mut row, interned) = (RowMut(words), &table.interned);
        let Some(elapsed) = self.now.checked_sub(row.read().at()) else { return Some(Verdict::Ahead(row.read().at())) };
        let (mut counts, mut positions, mut asked, mut refuses) = ([Count::default(); N], [0; N], 0_u32, false);
        for limit in self.limits_of(part) {
            let (charge, counter) = (self.charges[limit], self.charges[limit].counter());
            let next = asked.trailing_ones() as usize;
            let is_next = next < row.read().limits() && interned.is_limit(row.read().number(next), counter.id);
            let position = if is_next { next } else { interned.position(row.read(), counter.id)? };
            // The request has the same limit twice: the model counts both together.
            if asked >> position & 1 != 0 {
                return None;
            }
            asked |= 1 << position;
            let known = row.read().count(position);
            let count = interned.count_for(counter, known, elapsed)?;
            judged.is_converted |= count.number != known.number;
            if !bucket::holds(charge.quota(), count.value, charge.units()) {
                judged.is_refused = true;
                refuses |= bucket::refuses(charge.quota(), count.value, charge.units());
            }
            (counts[limit], positions[limit], used[limit]) = (count, position, count.value);
        }
        let has_others = asked != (1 << row.read().limits()) - 1;
        let others = Others { asked, interned };
        if has_others && others.have_windows(row.read()) {
            return None;
        }
        let verdict = self.decide(key + 1, judged, used)?;
        match verdict {
            Verdict::Admitted => {
                if has_others {
                    others.advance(&mut row, self.now);
                }
                for limit in self.limits_of(part) {
                    used[limit] += self.charges[limit].units() * self.charges[limit].quota().grain();
                    if judged.is_converted {
                        row.set_number(positions[limit], counts[limit].number);
                    }
                    row.set_value(positions[limit], used[limit]);
                }
                row.set_at(self.now);
                row.mark(Mark::Charged);
            }
            Verdict::Refused => row.mark(if refuses { Mark::Refused } else { Mark::Neither }),
            Verdict::NeedsRows | Verdict::Ahead(_) => {}
        }
        Some(verdict)
    }

    /// Judges a key without a row, whose limits are full unless it was evicted, and those after it.
    #[cold]
    #[inline(never)]
    fn decide_new(&self, key: usize, mut judged: Judged, used: &mut [u64; N], table: &mut Table) -> Option<Verdict> {
        let part = self.keys[key];
        for limit in self.limits_of(&part) {
            let charge = self.charges[limit];
            let is_spent =
                |filter: &mut EvictedFilter| filter.until((part.hash, charge.counter().id), self.now).is_some();
            if table.filter().is_some_and(is_spent) {
                return None;
            }
            judged.is_refused |= !bucket::holds(charge.quota(), 0, charge.units());
            used[limit] = 0;
        }
        let verdict = self.decide(key + 1, Judged { has_new: true, ..judged }, used)?;
        if verdict == Verdict::NeedsRows {
            let place = KeyPlace { hash: part.hash, ..KeyPlace::default() };
            let context =
                WriteContext { now: self.now, capacity: self.inner.capacity_of(part.number), together: &[place] };
            table.open(part.hash, self.limits_of(&part).map(|limit| self.charges[limit]), &context)?;
            self.inner.finish(part.number, table);
        }
        Some(verdict)
    }

    fn limits_of(&self, part: &KeyPart) -> impl Iterator<Item = usize> + use<N> {
        let limits = part.limits;
        (0..N).filter(move |limit| limits >> limit & 1 != 0)
    }
}

impl Judged {
    /// Returns the decision, once all keys were judged.
    const fn verdict(self) -> Option<Verdict> {
        match self {
            // It may leave nothing used: a draft drops such a row.
            Self { is_refused: true, is_converted: true, .. } => None,
            Self { is_refused: true, .. } => Some(Verdict::Refused),
            Self { has_new: true, .. } => Some(Verdict::NeedsRows),
            _ => Some(Verdict::Admitted),
        }
    }
}
