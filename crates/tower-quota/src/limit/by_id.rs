use tower_quota_core::Name;

/// The positions of a policy's limits by the numbers of their names.
///
/// Sorted numbers instead of a hash map, because a few limits fit in one cache line.
pub(crate) struct ById(Box<[(u32, u32)]>);

impl ById {
    pub(crate) fn new(names: impl Iterator<Item = Name>) -> Self {
        let mut positions: Box<[(u32, u32)]> = names
            .zip(0..)
            .map(|(name, position)| (name.id(), position))
            .collect();
        positions.sort_unstable();
        Self(positions)
    }

    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        let found = self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        usize::try_from(self.0.get(found)?.1).ok()
    }
}
