//! Recycling of numbers that no row holds any more.

use super::row::NO_NUMBER;
use super::table::Table;

impl Table {
    /// Drops the definitions that no row holds, if there are many. All numbers may change, so no caller may keep one.
    #[inline]
    pub(super) fn recycle_numbers(&mut self) {
        if self.interned.is_due() {
            self.renumber();
        }
    }

    #[cold]
    fn renumber(&mut self) {
        let before = core::mem::take(&mut self.interned);
        for position in 0..self.rows() {
            let limits = if self.row(position).is_free() {
                0
            } else {
                self.row(position).limits()
            };
            for limit in 0..limits {
                let definition = before.get(self.row(position).number(limit));
                let number = definition.and_then(|definition| self.interned.number(definition));
                self.row_mut(position)
                    .set_number(limit, number.unwrap_or(NO_NUMBER));
            }
        }
        self.interned.live = self.interned.len();
    }
}
