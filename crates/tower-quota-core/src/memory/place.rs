//! The places of a request's keys: rows of tables that are locked for the request.

use smallvec::SmallVec;

use super::Inner;
use super::table::Table;
use crate::charge::Charge;
use crate::sync::{MutexGuard, locked};

/// The guards of a request, in the order of their tables.
pub(super) type Guards<'a> = SmallVec<[MutexGuard<'a, Table>; 2]>;

/// The place of one key.
#[derive(Clone, Copy, Default)]
pub(super) struct KeyPlace {
    pub(super) hash: u64,
    /// The number of its table.
    pub(super) table: usize,
    /// The position of the table's guard among those of the request.
    pub(super) guard: usize,
    /// The position of its row, once it was looked for and if there is one.
    pub(super) row: Option<usize>,
}

/// The keys of a request, each once.
pub(super) struct Keys {
    pub(super) places: SmallVec<[KeyPlace; 2]>,
    /// The key of each charge.
    pub(super) of: SmallVec<[usize; 4]>,
}

impl Inner {
    /// Returns the keys of some charges.
    #[inline]
    pub(super) fn keys_of(&self, charges: &[Charge<'_>]) -> Keys {
        let mut keys = Keys {
            places: SmallVec::new(),
            of: SmallVec::new(),
        };
        for charge in charges {
            let hash = self.seed.hash(charge.key());
            let known = keys.places.iter().position(|place| place.hash == hash);
            let key = known.unwrap_or_else(|| {
                keys.places.push(KeyPlace {
                    hash,
                    table: self.table_of(hash),
                    ..KeyPlace::default()
                });
                keys.places.len() - 1
            });
            keys.of.push(key);
        }
        keys
    }

    /// Locks the tables of all keys, each once and in their order.
    ///
    /// With one order, two requests never wait for each other.
    pub(super) fn lock(&self, places: &mut [KeyPlace]) -> Guards<'_> {
        let mut guards = Guards::new();
        let mut next = places.iter().map(|place| place.table).min();
        while let Some(table) = next {
            places
                .iter_mut()
                .filter(|place| place.table == table)
                .for_each(|place| place.guard = guards.len());
            guards.push(locked(&self.tables[table].0));
            next = places
                .iter()
                .map(|place| place.table)
                .filter(|other| *other > table)
                .min();
        }
        guards
    }

    /// Ends a request in a table that may have been rewritten.
    #[inline]
    pub(super) fn finish(&self, number: usize, table: &mut Table) {
        table.recycle_numbers();
        self.prefetches[number].update(table);
    }
}
