//! Names of limits and keys.

use core::fmt;
use std::collections::BTreeSet;

use crate::sync::Lock;

/// The name of a limit or of a key's scope, cheap to copy.
///
/// Take names from your code or configuration, never from a request. A name keeps the text of a `String` until the
/// process ends.
///
/// ```
/// use tower_quota_core::Name;
///
/// const BURST: Name = Name::new("burst");
/// assert_eq!(BURST, Name::from(String::from("burst")));
/// assert_eq!(BURST.as_str(), "burst");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    text: &'static str,
    id: u32,
}

impl Name {
    /// Creates a name from a literal.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self {
            text,
            id: Self::id_of(text),
        }
    }

    /// Returns the text.
    pub const fn as_str(self) -> &'static str {
        self.text
    }

    /// Returns the number in stored state, the 32-bit FNV-1a hash of the text.
    ///
    /// A policy rejects two names with the same number.
    pub const fn id(self) -> u32 {
        self.id
    }

    /// Returns the number of the name with this text.
    #[must_use]
    #[doc(hidden)]
    pub const fn id_of(text: &str) -> u32 {
        fnv1a(OFFSET_BASIS, text.as_bytes())
    }

    /// Returns the number of the limit's holds, the hash of the name followed by `" holds"`.
    ///
    /// A limit that changes between holds and a rate has a counter for each.
    pub const fn holds_id(self) -> u32 {
        fnv1a(self.id, b" holds")
    }

    /// Returns the numbers of all counters of the limit.
    #[doc(hidden)]
    pub const fn counter_ids(self) -> [u32; 3] {
        [self.id, self.holds_id(), self.strikes_id()]
    }

    /// Returns the number of the limit's strikes, the hash of the name followed by `" penalty"`.
    pub const fn strikes_id(self) -> u32 {
        fnv1a(self.id, b" penalty")
    }
}

impl From<&'static str> for Name {
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        static KNOWN: Lock<BTreeSet<&'static str>> = Lock::new(BTreeSet::new());
        let mut known = KNOWN.lock();
        if let Some(kept) = known.get(text.as_str()) {
            return Self::new(kept);
        }
        let text = text.leak();
        known.insert(text);
        Self::new(text)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.text, f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

const OFFSET_BASIS: u32 = 0x811c_9dc5;

const fn fnv1a(mut hash: u32, bytes: &[u8]) -> u32 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    hash
}
