//! Names are short texts from your configuration.

use core::fmt;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The name of a limit or of a key's scope.
///
/// Names come from your code or configuration, never from a request. A name is a pointer and an id, so that decisions copy names
/// without an allocation. The process keeps the text of a `String` until the end, once for each distinct text.
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
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.text
    }

    /// Returns the id of the name in stored state, the 32-bit FNV-1a hash of the text.
    ///
    /// A policy refuses two names with the same id.
    #[must_use]
    pub const fn id(self) -> u32 {
        self.id
    }

    /// Returns the id of a text.
    #[must_use]
    pub const fn id_of(text: &str) -> u32 {
        fnv1a(OFFSET_BASIS, text.as_bytes())
    }

    /// Returns the id of the limit's strikes, which is the id of the name followed by `" penalty"`.
    #[must_use]
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
        static KNOWN: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(HashSet::new);
        let text = match known.get(text.as_str()) {
            Some(kept) => kept,
            None => {
                let kept: &'static str = Box::leak(text.into_boxed_str());
                known.insert(kept);
                kept
            }
        };
        Self::new(text)
    }
}

impl From<Cow<'static, str>> for Name {
    fn from(text: Cow<'static, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Self::new(text),
            Cow::Owned(text) => Self::from(text),
        }
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

/// The FNV-1a hash of an empty text.
const OFFSET_BASIS: u32 = 0x811c_9dc5;

/// Continues a 32-bit FNV-1a hash (Fowler, Noll, Vo; parameters from draft-eastlake-fnv).
const fn fnv1a(begun: u32, bytes: &[u8]) -> u32 {
    let mut hash = begun;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    hash
}
