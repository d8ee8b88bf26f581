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

/// The looks that an average remembers, which is far longer than a level of the limit lasts.
const LOOKS: usize = 128;

/// The part of a key with all places.
const WHOLE: usize = 1 << 16;

/// The places of each active key.
///
/// A key gets a share of its own at its second request. Until then, and when too many keys are active, keys share one
/// place. A client that makes up a key for each request therefore gets one share.
pub(super) struct Shares {
    slots: HashMap<u64, usize>,
    keys: Vec<ActiveKey>,
    unused: Vec<usize>,
    newcomers: Box<[u64]>,
    /// The fair share of a key in places, at the present level.
    share: usize,
    /// The fair share at the limit.
    most_share: usize,
    /// The limit.
    most: usize,
    period_began: Duration,
}

#[derive(Clone, Default)]
struct ActiveKey {
    digest: u64,
    held: usize,
    /// The average part of the limit that was held in so many looks, times [`WHOLE`].
    recent: usize,
    looks: usize,
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
            most_share: usize::MAX,
            most: 1,
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

    /// Returns whether a key comes after the other keys of its class.
    ///
    /// The average decides, so a key that uses half of its share may send a burst. While the level is low, a key that was
    /// over its share is still over, so it does not fill the places that the level takes away.
    pub(super) fn is_over(&self, slot: usize) -> bool {
        let ActiveKey { held, recent, .. } = self.keys[slot];
        let most = self.most_share;
        let was_over = recent.saturating_mul(self.most) >= most.saturating_mul(WHOLE / 4 * 3);
        (was_over && held >= self.share / 2) || held > most.saturating_add(most / 2)
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
    pub(super) fn look(&mut self, now: Duration, level: usize, most: usize) {
        if now.saturating_sub(self.period_began) >= PERIOD {
            self.period_began = now;
            self.end_period();
        }
        for key in &mut self.keys {
            key.looks = (key.looks + 1).min(LOOKS);
            key.recent = (key.recent * (key.looks - 1) + key.held * WHOLE / most) / key.looks;
        }
        let wanted = self.keys.iter().map(|key| key.peak.max(key.last_peak));
        let mut wanted: Vec<usize> = wanted.filter(|peak| *peak > 0).collect();
        wanted.sort_unstable();
        // An eighth stays free for keys that want more than before.
        self.share = fill(&wanted, level - level / 8);
        self.most_share = fill(&wanted, most - most / 8);
        self.most = most;
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
