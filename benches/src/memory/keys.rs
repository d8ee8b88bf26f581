//! The types of keys that limiters count by.

use std::fmt::{self, Display, Formatter, Write};
use std::hash::Hash;

use tower_quota_core::{Key, Name};

/// A type of keys.
pub(crate) trait Keyed:
    Clone + Default + Eq + Hash + Display + Send + Sync + 'static
{
    /// The type's part of a case's name.
    const NAME: &'static str;

    /// Changes into the key of this number.
    fn become_number(&mut self, number: u32);

    /// Returns the same key for tower-quota.
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
        // API keys are random text. Writing to a string cannot fail.
        let _ = write!(self, "{:016x}", mixed(u64::from(number)));
    }

    fn as_key(&self) -> Key<'_> {
        Key::new(USER, self.as_bytes())
    }
}

/// Two hundred bytes of text, as a token: a store should keep a digest of it only.
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

/// Returns distinct numbers without a pattern: the finalizer of splitmix64 (Steele, Lea and Flood, 2014).
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
