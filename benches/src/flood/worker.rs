//! One scene.

use std::error::Error;

use clap::{ArgAction, Args};
use tower_quota_core::{Key, MemoryStore, Name};

use super::client::{Clients, QUOTA, check};
use super::latencies::Latencies;
use super::waits::Waits;
use super::{MULTIPLES, stage};
use crate::child;

const NEW_KEY: Name = Name::new("new-key");

/// Requests of new keys for each request of a known client.
const NEW_KEYS_PER_CLIENT: u64 = 16;

/// The numbers of a scene.
#[derive(Args)]
pub(crate) struct Scene {
    /// The capacity of the store.
    places: usize,
    /// The number of clients known before the flood.
    clients: usize,
    /// The number of unknown keys.
    flood: u64,
    /// True if each new key uses up its quota at once.
    #[arg(action = ArgAction::Set)]
    is_greedy: bool,
}

/// Prints the figures of a flood, a line whenever it has grown to one of the multiples of the places.
pub(crate) fn worker(scene: &Scene) -> Result<(), Box<dyn Error>> {
    let (mut all, mut running) = (Latencies::new(), Latencies::new());
    let before = child::resident();
    let store = MemoryStore::with_capacity(scene.places);
    let mut clients = Clients::known_to(&store, scene.clients);
    let cost = if scene.is_greedy { QUOTA.capacity() } else { 1 };
    let mut waits = Waits::new();
    let mut new_keys = 0..scene.flood;
    for multiple in MULTIPLES {
        let until = multiple * u64::try_from(scene.places)?;
        if until > scene.flood {
            break;
        }
        let fresh = usize::try_from(until - new_keys.start)?;
        for new_key in new_keys.by_ref().take(fresh) {
            let key = Key::number(NEW_KEY, new_key);
            let (took, ran) = waits.during(|| _ = check(&store, &key, cost));
            all.add(took);
            running.add(ran);
            if new_key % NEW_KEYS_PER_CLIENT == 0 {
                // Every one of them in turn, and no neighbours after each other: a prime's multiples.
                clients.revisit(
                    &store,
                    (new_key / NEW_KEYS_PER_CLIENT).wrapping_mul(2_654_435_761),
                );
            }
        }
        stage::tell(&store, &clients, before, &all, &running);
    }
    Ok(())
}
