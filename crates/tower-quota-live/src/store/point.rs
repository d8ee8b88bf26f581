use serde::{Deserialize, Serialize};

/// A point in the history of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) began: u64,
    pub(crate) revision: u64,
}

impl Point {
    /// Returns whether the store has the history of the known point, or began again after this point.
    ///
    /// Another store began earlier, or has another beginning. An empty store has no history yet.
    pub(crate) fn continues(self, known: Self) -> bool {
        self.revision == 0 || self.began == known.began || self.began > known.revision
    }

    /// Returns whether the store lacks changes of the known history.
    pub(crate) fn has_left(self, known: Self) -> bool {
        self.revision < known.revision || self.began != known.began
    }
}
