//! Decisions in the rows of any keys, whatever the order of their limits and their quotas.

use super::Inner;
use super::charged::conclude;
use super::filter::EvictedFilter;
use super::insert::WriteContext;
use super::interned::Interned;
use super::place::KeyPlace;
use super::row::{Count, Mark, NARROW, Row, RowMut, WIDE};
use super::table::{Buckets, Table, row_of};
use crate::algorithm::bucket;
use crate::charge::Charge;
use crate::decision::Decision;
use crate::entry::TRUSTED_LEAD;
use crate::sync::locked;

/// The attempts to decide in rows, while other threads change them or take them away.
const MOST_ATTEMPTS: usize = 4;

impl Inner {
    /// Makes the decision in the rows of the keys, where new keys get rows of full limits.
    ///
    /// Does nothing when a row does not count all of its limits, or when two of the keys are in one table.
    #[inline]
    pub(super) fn check_rows<const N: usize>(
        &self,
        charges: [&Charge<'_>; N],
        decision: &mut Decision,
    ) -> Option<()> {
        let (mut keys, mut count) = ([KeyPart::default(); N], 0);
        for (limit, charge) in charges.into_iter().enumerate() {
            let is_same = |key: &KeyPart| core::ptr::eq(charges[key.first()].key(), charge.key());
            let key = keys[..count].iter().position(is_same).unwrap_or(count);
            if key == count {
                let hash = self.seed.hash(charge.key());
                let number = self.table_of(hash);
                self.prefetches[number].fetch::<NARROW>(hash);
                keys[key] = KeyPart {
                    hash,
                    number,
                    limits: 0,
                };
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
        let (mut request, mut used) = (
            RowsRequest {
                inner: self,
                charges,
                now: clock,
            },
            [0; N],
        );
        for _ in 0..MOST_ATTEMPTS {
            match request.decide(keys, Judged::default(), &mut used)? {
                Verdict::Ahead(at) if at - clock <= TRUSTED_LEAD => request.now = at,
                Verdict::Ahead(_) => return None,
                verdict if request.conclude(verdict, &used, decision) => return Some(()),
                _ => {}
            }
        }
        None
    }
}

/// A request whose keys are in tables of their own.
pub(super) struct RowsRequest<'a, const N: usize> {
    pub(super) inner: &'a Inner,
    pub(super) charges: [&'a Charge<'a>; N],
    pub(super) now: u64,
}

/// A key of a request.
#[derive(Clone, Copy, Default)]
pub(super) struct KeyPart {
    hash: u64,
    /// The number of its table.
    number: usize,
    /// Its limits, a bit for each charge.
    limits: u32,
}

impl KeyPart {
    /// Returns the only key of a request of `N` charges, whose table is locked already.
    pub(super) fn only<const N: usize>() -> Self {
        Self {
            limits: (1 << N) - 1,
            ..Self::default()
        }
    }

    /// Returns its first charge.
    const fn first(self) -> usize {
        self.limits.trailing_zeros() as usize
    }
}

/// The keys that were judged so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Judged {
    is_refused: bool,
    /// Says whether a count has to be converted to another quota.
    is_converted: bool,
    /// Says whether a key has no row yet.
    has_new: bool,
}

/// The decision on all keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
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
    #[inline]
    fn decide(&self, keys: &[KeyPart], judged: Judged, used: &mut [u64; N]) -> Option<Verdict> {
        match keys.split_first() {
            Some((key, rest)) => self.decide_key(key, rest, judged, used),
            None => judged.verdict(),
        }
    }

    fn decide_key(
        &self,
        part: &KeyPart,
        rest: &[KeyPart],
        judged: Judged,
        used: &mut [u64; N],
    ) -> Option<Verdict> {
        let mut table = locked(&self.inner.tables[part.number].0);
        let table = &mut *table;
        let words = match &mut table.buckets {
            Buckets::Narrow(buckets) => {
                row_of(buckets, part.hash).map(<[u64; NARROW]>::as_mut_slice)
            }
            Buckets::Wide(buckets) => row_of(buckets, part.hash).map(<[u64; WIDE]>::as_mut_slice),
        };
        let Some(words) = words else {
            return self.decide_new(part, rest, judged, used, table);
        };
        self.decide_in_row(part, rest, (RowMut(words), &table.interned), judged, used)
    }

    /// Judges a key by its row, and the keys after it.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call would move its ten arguments")]
    pub(super) fn decide_in_row(
        &self,
        part: &KeyPart,
        rest: &[KeyPart],
        (mut row, interned): (RowMut<'_>, &Interned),
        mut judged: Judged,
        used: &mut [u64; N],
    ) -> Option<Verdict> {
        let Some(elapsed) = self.now.checked_sub(row.read().at()) else {
            return Some(Verdict::Ahead(row.read().at()));
        };
        let (mut counts, mut positions, mut asked, mut refuses) =
            ([Count::default(); N], [0; N], 0_u32, false);
        for limit in self.limits_of(part) {
            let (charge, counter) = (self.charges[limit], self.charges[limit].counter());
            let next = asked.trailing_ones() as usize;
            let is_next = next < row.read().limits()
                && interned.is_limit(row.read().number(next), counter.id);
            let position = if is_next {
                next
            } else {
                interned.position(row.read(), counter.id)?
            };
            // The request has the same limit twice: the model counts both together.
            if asked >> position & 1 != 0 {
                return None;
            }
            asked |= 1 << position;
            let known = row.read().count(position);
            let (count, fits) = match counter.quota.refill() {
                0 => self.judge_window(limit, position, row.read(), interned, used)?,
                _ => {
                    let count = interned.count_for(counter, known, elapsed)?;
                    used[limit] = count.value;
                    let added = charge.units().wrapping_mul(counter.quota.grain());
                    let fits = bucket::holds(counter.quota, count.value, charge.units());
                    (
                        Count {
                            value: count.value.wrapping_add(added),
                            ..count
                        },
                        fits,
                    )
                }
            };
            judged.is_converted |= count.number != known.number;
            if !fits {
                judged.is_refused = true;
                refuses |= charge.units() <= counter.quota.capacity();
            }
            (counts[limit], positions[limit]) = (count, position);
        }
        let has_others = asked != (1 << row.read().limits()) - 1;
        let verdict = self.decide(rest, judged, used)?;
        match verdict {
            Verdict::Admitted => {
                if has_others {
                    Others { asked, interned }.advance(&mut row, self.now);
                }
                for limit in self.limits_of(part) {
                    used[limit] = counts[limit].value;
                    if judged.is_converted {
                        row.set_number(positions[limit], counts[limit].number);
                    }
                    row.set_value(positions[limit], used[limit]);
                }
                row.set_at(self.now);
                row.mark(Mark::Charged);
            }
            Verdict::Refused => row.mark(if refuses {
                Mark::Refused
            } else {
                Mark::Neither
            }),
            Verdict::NeedsRows | Verdict::Ahead(_) => {}
        }
        Some(verdict)
    }

    /// Judges a limit that counts in windows. Returns its count with the charge if it fits, and whether it does.
    #[cold]
    #[inline(never)]
    fn judge_window(
        &self,
        limit: usize,
        position: usize,
        row: Row<'_>,
        interned: &Interned,
        used: &mut [u64; N],
    ) -> Option<(Count, bool)> {
        let charge = self.charges[limit];
        // Nothing if it is counted by another quota.
        let known = Some(row.count(position))
            .filter(|known| interned.is_counter(known.number, charge.counter()))?;
        let mut count = interned.advanced(known, row.at(), self.now);
        used[limit] = count.value;
        let fits = charge.fits(count.value, self.now);
        if fits {
            count.value = charge.added(count.value, self.now)?;
        }
        row.has_room_for(count).then_some((count, fits))
    }

    /// Judges a key without a row, whose limits are full unless it was evicted, and those after it.
    #[cold]
    #[inline(never)]
    fn decide_new(
        &self,
        part: &KeyPart,
        rest: &[KeyPart],
        mut judged: Judged,
        used: &mut [u64; N],
        table: &mut Table,
    ) -> Option<Verdict> {
        for limit in self.limits_of(part) {
            let charge = self.charges[limit];
            let is_spent = |filter: &mut EvictedFilter| {
                filter
                    .until((part.hash, charge.counter().id), self.now)
                    .is_some()
            };
            if table.filter().is_some_and(is_spent) {
                return None;
            }
            judged.is_refused |= charge.units() > charge.quota().capacity();
            used[limit] = 0;
        }
        let verdict = self.decide(
            rest,
            Judged {
                has_new: true,
                ..judged
            },
            used,
        )?;
        if verdict == Verdict::NeedsRows {
            let place = KeyPlace {
                hash: part.hash,
                ..KeyPlace::default()
            };
            let context = WriteContext {
                now: self.now,
                capacity: self.inner.capacity_of(part.number),
                together: &[place],
            };
            table.open(
                part.hash,
                self.limits_of(part).map(|limit| self.charges[limit]),
                &context,
            )?;
            self.inner.finish(part.number, table);
        }
        Some(verdict)
    }

    /// Writes the decision, if there is one. Returns whether there is.
    #[inline(always)]
    pub(super) fn conclude(
        &self,
        verdict: Verdict,
        used: &[u64; N],
        decision: &mut Decision,
    ) -> bool {
        let is_made = matches!(verdict, Verdict::Admitted | Verdict::Refused);
        if is_made {
            let charge = |limit: usize| (self.charges[limit], used[limit]);
            conclude(decision, self.now, verdict == Verdict::Admitted, N, charge);
        }
        is_made
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
            Self {
                is_refused: true,
                is_converted: true,
                ..
            } => None,
            Self {
                is_refused: true, ..
            } => Some(Verdict::Refused),
            Self { has_new: true, .. } => Some(Verdict::NeedsRows),
            _ => Some(Verdict::Admitted),
        }
    }
}

/// The limits of a row that the request does not ask.
#[derive(Clone, Copy)]
pub(super) struct Others<'a> {
    /// The limits that it asks, a bit for each position.
    pub(super) asked: u32,
    pub(super) interned: &'a Interned,
}

impl Others<'_> {
    /// Moves them to `now`.
    #[cold]
    #[inline(never)]
    pub(super) fn advance(self, row: &mut RowMut<'_>, now: u64) {
        for position in (0..row.read().limits()).filter(|position| self.asked >> position & 1 == 0)
        {
            let count = self
                .interned
                .advanced(row.read().count(position), row.read().at(), now);
            row.set_value(position, count.value);
        }
    }
}
