//! The tables of a request, all locked.

use smallvec::SmallVec;

use super::Inner;
use super::draft::Draft;
use super::table::Table;
use crate::sync::{MutexGuard, locked};

/// The guards of a request, in the order of their tables.
pub(super) type Guards<'a> = SmallVec<[MutexGuard<'a, Table>; 2]>;

impl Inner {
    /// Locks the tables of all drafts, each once and in their order.
    ///
    /// With one order, two requests never wait for each other.
    pub(super) fn lock(&self, drafts: &mut [Draft]) -> Guards<'_> {
        let mut guards = Guards::new();
        let mut next = drafts.iter().map(|draft| draft.table).min();
        while let Some(table) = next {
            drafts.iter_mut().filter(|draft| draft.table == table).for_each(|draft| draft.guard = guards.len());
            guards.push(locked(&self.tables[table].0));
            next = drafts.iter().map(|draft| draft.table).filter(|other| *other > table).min();
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
