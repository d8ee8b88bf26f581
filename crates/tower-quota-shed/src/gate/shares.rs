use core::time::Duration;
use std::collections::HashMap;

use crate::priority::Priority;

const CLASSES: usize = Priority::ALL.len();

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

/// The places of each active key in each class.
///
/// The keys of a class divide the places that better classes leave. A key gets a share of its own at its second request.
/// Until then, and when too many keys are active, the keys of a class share one slot. A client that makes up a key for each
/// request therefore gets one share.
pub(super) struct Shares {
    slots: HashMap<(Priority, u64), usize>,
    /// First the keys without a share of their own, one slot for each class.
    keys: Vec<ActiveKey>,
    unused: Vec<usize>,
    newcomers: Box<[u64]>,
    /// The fair share of a key of each class, as a part of the limit.
    shares: [usize; CLASSES],
    /// The places that a key of each class may hold in a burst.
    bursts: [usize; CLASSES],
    period_began: Duration,
}

struct ActiveKey {
    class: Priority,
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
            keys: Priority::ALL.map(|class| ActiveKey::new(class, 0)).into(),
            unused: Vec::new(),
            newcomers: (0..NEWCOMERS).map(|_| 0).collect(),
            shares: [usize::MAX; CLASSES],
            bursts: [usize::MAX; CLASSES],
            period_began: Duration::ZERO,
        }
    }

    /// Returns the slot of a key, or of all other keys of the class.
    pub(super) fn slot_of(&mut self, class: Priority, key: Option<u64>) -> usize {
        let Some(digest) = key else {
            return class as usize;
        };
        if let Some(slot) = self.slots.get(&(class, digest)) {
            return *slot;
        }
        let newcomer = &mut self.newcomers[(digest % NEWCOMERS) as usize];
        if *newcomer != digest || self.slots.len() == MOST_KEYS {
            *newcomer = digest;
            return class as usize;
        }
        let key = ActiveKey::new(class, digest);
        let slot = self.unused.pop().unwrap_or(self.keys.len());
        match self.keys.get_mut(slot) {
            Some(unused) => *unused = key,
            None => self.keys.push(key),
        }
        self.slots.insert((class, digest), slot);
        slot
    }

    /// Returns whether a key comes after the other keys of its class.
    ///
    /// The average decides, so a key that uses half of its share may send a burst. The average of a few looks says nothing.
    pub(super) fn is_over(&self, slot: usize) -> bool {
        let key = &self.keys[slot];
        let class = key.class as usize;
        let was_over = key.looks >= LOOKS / 8 && key.recent >= self.shares[class];
        was_over || key.held > self.bursts[class]
    }

    pub(super) fn take(&mut self, slot: usize) {
        let key = &mut self.keys[slot];
        key.held += 1;
        key.peak = key.peak.max(key.held);
    }

    /// Notes that the key wants more places than it gets.
    pub(super) fn refuse(&mut self, slot: usize) {
        // The first request of each key is one of the others, and their demand ends with it.
        if slot >= CLASSES {
            self.keys[slot].peak = usize::MAX;
        }
    }

    pub(super) fn give_back(&mut self, slot: usize) {
        self.keys[slot].held -= 1;
    }

    /// Computes the shares again, from the places that the active keys wanted recently. The best `fit` classes together
    /// get all the places that they want.
    pub(super) fn look(&mut self, now: Duration, most: usize, fit: usize) {
        if now.saturating_sub(self.period_began) >= PERIOD {
            self.period_began = now;
            self.end_period();
        }
        for key in &mut self.keys {
            key.looks = (key.looks + 1).min(LOOKS);
            key.recent = (key.recent * (key.looks - 1) + key.held * WHOLE / most) / key.looks;
        }
        let mut wanted = [const { Vec::new() }; CLASSES];
        let mut used = [0; CLASSES];
        for key in &self.keys {
            used[key.class as usize] += key.recent;
            let peak = key.peak.max(key.last_peak);
            if peak > 0 {
                wanted[key.class as usize].push(peak.saturating_mul(WHOLE) / most);
            }
        }
        // An eighth stays free for keys that want more than before.
        let mut left = WHOLE - WHOLE / 8;
        for (class, wanted) in wanted.iter_mut().enumerate() {
            wanted.sort_unstable();
            let share = fill(wanted, left);
            let places = (share.saturating_mul(most) / WHOLE).max(1);
            self.bursts[class] = places + places / 2;
            // A class that does not fit never gets what is left, so its keys divide what the class has. Only the best class
            // leaves no room.
            self.shares[class] = match class < fit.max(1) {
                true => share,
                false => fill(wanted, used[class]),
            };
            left = left.saturating_sub(used[class]);
        }
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.keys.iter().map(|key| key.held).sum()
    }

    #[cfg(test)]
    pub(super) fn tracked(&self) -> usize {
        self.keys.len() - CLASSES
    }

    fn end_period(&mut self) {
        for (slot, key) in self.keys.iter_mut().enumerate() {
            key.last_peak = core::mem::replace(&mut key.peak, key.held);
            let is_idle = key.last_peak == 0 && key.held == 0;
            // Unused slots have left the map before.
            let name = (key.class, key.digest);
            if slot >= CLASSES && is_idle && self.slots.get(&name) == Some(&slot) {
                self.slots.remove(&name);
                self.unused.push(slot);
            }
        }
    }
}

impl ActiveKey {
    const fn new(class: Priority, digest: u64) -> Self {
        Self {
            class,
            digest,
            held: 0,
            recent: 0,
            looks: 0,
            peak: 0,
            last_peak: 0,
        }
    }
}

/// Returns the share at which the demands fill the parts, so that small demands are met first.
fn fill(wanted: &[usize], parts: usize) -> usize {
    let mut left = parts;
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
