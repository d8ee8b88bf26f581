use core::borrow::Borrow;
use core::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::sync::Arc;

const SHARDS: u64 = 256;

/// A map in shards. A clone shares the shards, and a change copies a single shard.
#[derive(Clone)]
pub(super) struct Shards<K, V> {
    shards: Box<[Arc<HashMap<K, V>>]>,
    len: usize,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        let empty = Arc::default();
        Self {
            shards: (0..SHARDS).map(|_| Arc::clone(&empty)).collect(),
            len: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Shards<K, V> {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.shards[shard(key)].get(key)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        let shard = Arc::make_mut(&mut self.shards[shard(&key)]);
        if shard.insert(key, value).is_none() {
            self.len += 1;
        }
    }

    pub(super) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let shard = &mut self.shards[shard(key)];
        // Copy no shard for a missing key.
        if !shard.contains_key(key) {
            return None;
        }
        self.len -= 1;
        Arc::make_mut(shard).remove(key)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.shards.iter().flat_map(|shard| shard.values())
    }
}

fn shard<Q: Hash + ?Sized>(key: &Q) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
    usize::try_from(hash % SHARDS).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_leaves_clones_alone() {
        let mut map = Shards::default();
        for number in 0..1_000_u64 {
            map.insert(number, number);
        }
        let before = map.clone();
        map.insert(3, 33);
        assert_eq!(map.remove(&4), Some(4));
        assert_eq!(map.remove(&4), None);
        assert_eq!((map.len(), map.values().count()), (999, 999));
        assert_eq!((map.get(&3), map.get(&4)), (Some(&33), None));
        assert_eq!((before.len(), before.values().count()), (1_000, 1_000));
        assert_eq!((before.get(&3), before.get(&4)), (Some(&3), Some(&4)));
        // All other shards are shared.
        let shards = map.shards.iter().zip(&before.shards);
        let copied = shards.filter(|(one, other)| !Arc::ptr_eq(one, other));
        assert!(copied.count() <= 2);
    }
}
