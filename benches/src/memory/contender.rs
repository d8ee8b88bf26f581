//! What every limiter is asked to do.

use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;

use tower_quota_core::{Key, Name};

/// A limiter that counts by keys of this type.
pub(crate) trait Contender<K>: Sync {
    /// Asks for one unit. Whether it was admitted.
    fn admits(&self, key: &K) -> bool;

    /// Asks once for each key. How many were admitted.
    fn admitted(&self, keys: &[K]) -> usize {
        keys.iter().filter(|key| self.admits(std::hint::black_box(key))).count()
    }
}

/// A type of keys.
pub(crate) trait Keyed: Clone + Default + Send + Sync + 'static {
    /// What it is called in a case's name.
    const NAME: &'static str;

    /// Becomes the key of this number.
    fn become_number(&mut self, number: u32);

    /// As tower-quota's.
    fn as_key(&self) -> Key<'_>;
}

const USER: Name = Name::new("user");

impl Keyed for u64 {
    const NAME: &'static str = "u64";

    fn become_number(&mut self, number: u32) {
        *self = u64::from(number);
    }

    fn as_key(&self) -> Key<'_> {
        Key::number(USER, *self)
    }
}

/// Sixteen bytes of text, as an API key.
impl Keyed for String {
    const NAME: &'static str = "str";

    fn become_number(&mut self, number: u32) {
        self.clear();
        // Without a pattern, as those who give out keys see to. Writing to a string cannot fail.
        let _ = write!(self, "{:016x}", mixed(u64::from(number)));
    }

    fn as_key(&self) -> Key<'_> {
        Key::new(USER, self.as_bytes())
    }
}

/// Two hundred bytes of text, as a token: a digest of it is all that should be kept.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Long(String);

impl Keyed for Long {
    const NAME: &'static str = "200-byte-keys";

    fn become_number(&mut self, number: u32) {
        self.0.clear();
        let _ = write!(self.0, "{:0200x}", mixed(u64::from(number)));
    }

    fn as_key(&self) -> Key<'_> {
        Key::new(USER, self.0.as_bytes())
    }
}

impl Display for Long {
    fn fmt(&self, text: &mut Formatter<'_>) -> fmt::Result {
        text.write_str(&self.0)
    }
}

/// Numbers without a pattern, each another: the finalizer of splitmix64 (Steele, Lea and Flood, 2014).
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// What one limit allows: a burst, and how long it takes to earn one unit of it.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    pub(crate) name: &'static str,
    pub(crate) burst: u32,
    pub(crate) unit: Duration,
}

/// Nobody is refused, and nobody is whole again, within a run: every contender does its full work on entries that
/// count something. One limit is the first of these, three are all.
pub(crate) const ALLOWANCES: [Allowance; 3] = [
    Allowance { name: "first", burst: 9_000_000, unit: Duration::from_secs(120) },
    Allowance { name: "second", burst: 8_500_000, unit: Duration::from_secs(130) },
    Allowance { name: "third", burst: 8_000_000, unit: Duration::from_secs(140) },
];

/// One limiter per limit, all of them asked: what one does with a limiter that knows one limit.
pub(crate) struct Each<C>(pub(crate) Vec<C>);

impl<C> Each<C> {
    pub(crate) fn new(limits: usize, limiter: impl Fn(&Allowance) -> C) -> Self {
        Self(ALLOWANCES.iter().take(limits).map(limiter).collect())
    }
}

impl<K, C: Contender<K>> Contender<K> for Each<C> {
    fn admits(&self, key: &K) -> bool {
        self.0.iter().fold(true, |admitted, limiter| limiter.admits(key) & admitted)
    }
}
