//! The positions of limits by the numbers of their names.

use tower_quota_core::Name;

/// Finds the position of a limit in a list by the number of its name, which is unique in a policy.
///
/// Sorted numbers instead of a hash map: a few limits lie in one cache line, and ten thousand take 14 comparisons.
#[derive(Debug)]
pub(crate) struct ById(Box<[(u32, u32)]>);

impl ById {
    /// Makes the index of a list of limits with these names.
    pub(crate) fn new(names: impl Iterator<Item = Name>) -> Self {
        let mut positions: Box<[(u32, u32)]> = names
            .zip(0..)
            .map(|(name, position)| (name.id(), position))
            .collect();
        positions.sort_unstable();
        Self(positions)
    }

    /// Returns the position of the limit whose name has this number.
    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        let found = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        usize::try_from(self.0.get(found)?.1).ok()
    }
}
