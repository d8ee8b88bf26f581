//! The keys of a request to the model, and their shards.

use super::Inner;
use super::place::Place;
use super::shard::Shard;
use crate::charge::Charge;
use crate::sync::{MutexGuard, locked};

impl Inner {
    /// Returns the places of all keys, each once and in the order of their shards.
    pub(super) fn places_of(&self, charges: &[Charge<'_>]) -> Vec<Place> {
        let place = |charge: &Charge<'_>| {
            let hash = self.hash(charge.key());
            let shard = self.shard_of(hash);
            Place { shard, hash }
        };
        let mut places: Vec<Place> = charges.iter().map(place).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Locks the shards of sorted places, each once. Returns each with its number.
    pub(super) fn lock(&self, places: &[Place]) -> Vec<(usize, MutexGuard<'_, Shard>)> {
        let mut guards: Vec<(usize, MutexGuard<'_, Shard>)> = Vec::with_capacity(places.len());
        for place in places {
            if guards.last().is_none_or(|(shard, _)| *shard != place.shard) {
                guards.push((place.shard, locked(&self.shards[place.shard].0)));
            }
        }
        guards
    }
}
