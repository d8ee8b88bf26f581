//! Sets that are disjoint or inside one another: prefixes of keys, networks of addresses.
//!
//! The sets are sorted so that a set comes before those inside it, and each knows the smallest one around it. All sets
//! that contain a value are then the last one that begins at or before the value, and those around it: one binary search
//! and a walk outwards, however many sets there are.

/// A set that is disjoint from any other one, or contains it, or is inside it.
pub(crate) trait Nests: Ord {
    /// Returns whether the other set is inside this one.
    fn contains(&self, other: &Self) -> bool;
}

/// The index of sets, each with numbers.
#[derive(Debug)]
pub(crate) struct Nested<K> {
    sets: Vec<Set<K>>,
}

#[derive(Debug)]
struct Set<K> {
    key: K,
    /// The position of the smallest set around this one.
    around: Option<u32>,
    numbers: Vec<u32>,
}

impl<K: Nests> Nested<K> {
    /// Makes the index of these sets.
    pub(crate) fn new(mut entries: Vec<(K, u32)>) -> Self {
        entries.sort();
        let mut sets: Vec<Set<K>> = Vec::with_capacity(entries.len());
        let mut open: Vec<u32> = Vec::new();
        let at = |position: u32| usize::try_from(position).unwrap_or(usize::MAX);
        for (key, number) in entries {
            if let Some(last) = sets.last_mut().filter(|last| last.key == key) {
                last.numbers.push(number);
                continue;
            }
            while open.last().is_some_and(|last| {
                sets.get(at(*last))
                    .is_some_and(|last| !last.key.contains(&key))
            }) {
                open.pop();
            }
            let position = u32::try_from(sets.len()).unwrap_or(u32::MAX);
            sets.push(Set {
                key,
                around: open.last().copied(),
                numbers: vec![number],
            });
            open.push(position);
        }
        Self { sets }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Visits the numbers of all sets that contain a value, the smallest set first.
    ///
    /// `is_behind` returns whether a set sorts behind the value.
    pub(crate) fn find(
        &self,
        is_behind: impl Fn(&K) -> bool,
        contains: impl Fn(&K) -> bool,
        mut visit: impl FnMut(u32),
    ) {
        let end = self.sets.partition_point(|set| !is_behind(&set.key));
        let mut next = end.checked_sub(1);
        while let Some(set) = next.and_then(|next| self.sets.get(next)) {
            if contains(&set.key) {
                set.numbers.iter().for_each(|number| visit(*number));
            }
            next = set.around.and_then(|around| usize::try_from(around).ok());
        }
    }
}

/// A prefix of texts.
impl Nests for Box<[u8]> {
    fn contains(&self, other: &Self) -> bool {
        other.starts_with(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Nested;

    #[test]
    fn all_prefixes_are_found() {
        let prefixes = ["", "a", "ab", "abc", "abd", "b", "ba", "a"];
        let entries = prefixes
            .iter()
            .zip(0..)
            .map(|(prefix, number)| (prefix.as_bytes().into(), number))
            .collect();
        let nested: Nested<Box<[u8]>> = Nested::new(entries);
        for text in ["", "a", "abcd", "abda", "ac", "b", "bb", "bab", "c", "abb"] {
            let mut found = Vec::new();
            nested.find(
                |key| **key > *text.as_bytes(),
                |key| text.as_bytes().starts_with(key),
                |number| found.push(number),
            );
            found.sort_unstable();
            let is_prefix =
                |(prefix, number): (&&str, u32)| text.starts_with(*prefix).then_some(number);
            let expected: Vec<u32> = prefixes.iter().zip(0..).filter_map(is_prefix).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
