//! The clients known before the flood, and the share of them that the store still remembers.

use std::time::Duration;

use tower_quota_core::{Charge, Key, MemoryStore, Name, Quota, Store};

/// Slow enough that no unit comes back within a scene.
pub(super) const QUOTA: Quota = Quota::new(1_000, Duration::from_secs(30 * 86_400));
const MONTH: Name = Name::new("month");
const CLIENT: Name = Name::new("client");

/// All known clients, with the units that each has used.
pub(super) struct Clients {
    used: Vec<u64>,
    pub(super) limited: Share,
    pub(super) ordinary: Share,
    pub(super) forgotten: Share,
}

/// A share of requests: this many of this many.
#[derive(Default)]
pub(super) struct Share {
    some: u64,
    all: u64,
}

impl Clients {
    /// Makes clients known to the store: every second one has used up its quota, the others a little of theirs.
    pub(super) fn known_to(store: &MemoryStore, clients: usize) -> Self {
        let mut used = vec![0; clients];
        for (client, used) in (0_u64..).zip(&mut used) {
            *used = if is_limited(client) {
                QUOTA.capacity()
            } else {
                10
            };
            check(store, &Key::number(CLIENT, client), *used);
        }
        Self {
            used,
            limited: Share::default(),
            ordinary: Share::default(),
            forgotten: Share::default(),
        }
    }

    /// Returns the bytes of this list itself.
    pub(super) const fn bytes(&self) -> usize {
        self.used.len() * size_of::<u64>()
    }

    /// Checks one unit for a client, and counts wrong answers.
    ///
    /// A limited client should be refused. Another should be admitted, and the store should remember its earlier use:
    /// a store that forgets it admits more than the quota.
    pub(super) fn revisit(&mut self, store: &MemoryStore, draw: u64) {
        let position = draw as usize % self.used.len();
        let client = position as u64;
        let used = &mut self.used[position];
        let left = check(store, &Key::number(CLIENT, client), 1);
        if is_limited(client) {
            self.limited.add(left.is_none());
        } else if *used < QUOTA.capacity() {
            self.ordinary.add(left.is_some());
            if let Some(left) = left {
                *used += 1;
                self.forgotten.add(left > QUOTA.capacity() - *used);
                // From here on the client has used what the store remembers.
                *used = QUOTA.capacity() - left;
            }
        }
    }
}

impl Share {
    fn add(&mut self, is_one: bool) {
        self.some += u64::from(is_one);
        self.all += 1;
    }

    pub(super) fn percent(&self) -> f64 {
        self.some as f64 * 100.0 / self.all.max(1) as f64
    }
}

const fn is_limited(client: u64) -> bool {
    client.is_multiple_of(2)
}

/// Asks for units. Returns what is left if they were admitted.
pub(super) fn check(store: &MemoryStore, key: &Key<'_>, units: u64) -> Option<u64> {
    let decision = store
        .check(&[Charge::new(MONTH, &QUOTA, key).cost(units)])
        .into_inner()
        .ok()?;
    decision.is_allowed().then(|| {
        decision
            .statuses()
            .first()
            .map_or(0, |standing| standing.remaining())
    })
}
