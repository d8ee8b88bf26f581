use core::time::Duration;
use std::collections::HashMap;

/// The place of all keys without a share of their own.
const OTHERS: usize = 0;

/// The keys with shares of their own.
const MOST_KEYS: usize = 1_000;

/// The keys whose last request is remembered until their second request.
const NEWCOMERS: u64 = 1_024;

/// A key stays active for one to two of these periods after its last place.
const PERIOD: Duration = Duration::from_secs(5);

/// The places of each active key.
///
/// A key gets a share of its own at its second request. Until then, and when too many keys are active, keys share one
/// place. A client that makes up a key for each request therefore gets one share.
pub(super) struct Shares {
    slots: HashMap<u64, usize>,
    keys: Vec<ActiveKey>,
    unused: Vec<usize>,
    newcomers: Box<[u64]>,
    /// The places of a key before the key is over its share.
    share: usize,
    period_began: Duration,
}

#[derive(Clone, Default)]
struct ActiveKey {
    digest: u64,
    held: usize,
    /// Sixteen times the recent average of `held`.
    recent: usize,
    /// The most places in this period, or the maximum if the key wanted more.
    peak: usize,
    last_peak: usize,
}

impl Shares {
    pub(super) fn new() -> Self {
        Self {
            slots: HashMap::new(),
            keys: vec![ActiveKey::default()],
            unused: Vec::new(),
            newcomers: (0..NEWCOMERS).map(|_| 0).collect(),
            share: usize::MAX,
            period_began: Duration::ZERO,
        }
    }

    /// Returns the place of a key, or of all other keys.
    pub(super) fn slot_of(&mut self, key: Option<u64>) -> usize {
        let Some(digest) = key else {
            return OTHERS;
        };
        if let Some(slot) = self.slots.get(&digest) {
            return *slot;
        }
        let newcomer = &mut self.newcomers[(digest % NEWCOMERS) as usize];
        if *newcomer != digest || self.slots.len() == MOST_KEYS {
            *newcomer = digest;
            return OTHERS;
        }
        let key = ActiveKey {
            digest,
            ..ActiveKey::default()
        };
        let slot = self.unused.pop().unwrap_or(self.keys.len());
        match self.keys.get_mut(slot) {
            Some(unused) => *unused = key,
            None => self.keys.push(key),
        }
        self.slots.insert(digest, slot);
        slot
    }

    /// Returns whether a key is over its share now, and recently was near or is far over.
    ///
    /// A key that uses half of its share may therefore send a burst.
    pub(super) fn is_over(&self, slot: usize) -> bool {
        let ActiveKey { held, recent, .. } = self.keys[slot];
        let share = self.share;
        held >= share && (recent >= 12 * share || held > 2 * share)
    }

    pub(super) fn take(&mut self, slot: usize) {
        let key = &mut self.keys[slot];
        key.held += 1;
        key.peak = key.peak.max(key.held);
    }

    /// Notes that the key wants more places than it gets.
    pub(super) fn refuse(&mut self, slot: usize) {
        // The first request of each key is one of the others, and their demand ends with it.
        if slot != OTHERS {
            self.keys[slot].peak = usize::MAX;
        }
    }

    pub(super) fn give_back(&mut self, slot: usize) {
        self.keys[slot].held -= 1;
    }

    /// Computes the share again, from the places that the active keys wanted recently.
    pub(super) fn look(&mut self, now: Duration, limit: usize) {
        if now.saturating_sub(self.period_began) >= PERIOD {
            self.period_began = now;
            self.end_period();
        }
        for key in &mut self.keys {
            key.recent += key.held;
            key.recent -= key.recent.div_ceil(16);
        }
        let wanted = self.keys.iter().map(|key| key.peak.max(key.last_peak));
        let mut wanted: Vec<usize> = wanted.filter(|peak| *peak > 0).collect();
        wanted.sort_unstable();
        // An eighth stays free for keys that want more than before.
        self.share = fill(&wanted, limit - limit / 8);
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.keys.iter().map(|key| key.held).sum()
    }

    #[cfg(test)]
    pub(super) fn tracked(&self) -> usize {
        self.keys.len()
    }

    fn end_period(&mut self) {
        for (slot, key) in self.keys.iter_mut().enumerate() {
            key.last_peak = core::mem::replace(&mut key.peak, key.held);
            let is_idle = key.last_peak == 0 && key.held == 0;
            // Unused slots have left the map before.
            if slot != OTHERS && is_idle && self.slots.get(&key.digest) == Some(&slot) {
                self.slots.remove(&key.digest);
                self.unused.push(slot);
            }
        }
    }
}

/// Returns the share at which the demands fill the places, so that small demands are met first.
fn fill(wanted: &[usize], places: usize) -> usize {
    let mut left = places;
    for (met, demand) in wanted.iter().enumerate() {
        let equal = left / (wanted.len() - met);
        if *demand > equal {
            return if wanted.len() == 1 {
                usize::MAX
            } else {
                equal.max(1)
            };
        }
        left -= demand;
    }
    usize::MAX
}
