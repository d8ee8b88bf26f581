//! The error of decoding an entry.

use core::fmt;

use super::VERSION;

/// Bytes that are not an entry in the stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The first byte names a version that this build does not read. An empty value has none: `None`.
    Version(Option<u8>),
    /// The bytes end in the middle of the slot that begins at this offset.
    Truncated {
        /// Offset of the slot, in bytes.
        slot: usize,
    },
    /// The slot at this offset has a kind of state that this build does not know.
    Kind {
        /// Offset of the slot, in bytes.
        slot: usize,
        /// The byte that holds the kind.
        kind: u8,
    },
    /// The slot at this offset has numbers that no quota and no state has.
    Numbers {
        /// Offset of the slot, in bytes.
        slot: usize,
    },
    /// Two slots are of the same limit.
    Repeated {
        /// Offset of the second one, in bytes.
        slot: usize,
    },
}

impl core::error::Error for DecodeError {}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(None) => {
                f.write_str("an entry of no bytes: delete it, a missing entry is a full one")
            }
            Self::Version(Some(version)) => {
                write!(
                    f,
                    "an entry of version {version}, and this build reads version {VERSION}: keep versions apart by prefix"
                )
            }
            Self::Truncated { slot } => write!(
                f,
                "the entry ends within the slot at byte {slot}: it was cut off"
            ),
            Self::Kind { slot, kind } => write!(
                f,
                "the slot at byte {slot} has the unknown kind of state {kind}"
            ),
            Self::Numbers { slot } => {
                write!(
                    f,
                    "the slot at byte {slot} has numbers that no quota and no state has: delete the entry"
                )
            }
            Self::Repeated { slot } => write!(
                f,
                "the slot at byte {slot} repeats a limit: delete the entry"
            ),
        }
    }
}
