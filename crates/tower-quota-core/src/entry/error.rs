//! The error of decoding an entry.

use core::fmt;

use super::VERSION;

/// The bytes are not the stored form of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// This build does not read the version in the first byte, if there is a byte.
    Version(Option<u8>),
    /// The bytes end within a slot.
    Truncated {
        /// The offset of the slot in bytes.
        slot: usize,
    },
    /// This build does not know the kind of state of a slot.
    Kind {
        /// The offset of the slot in bytes.
        slot: usize,
        /// The byte with the kind.
        kind: u8,
    },
    /// No quota and no state has the numbers of a slot.
    Numbers {
        /// The offset of the slot in bytes.
        slot: usize,
    },
    /// Two slots count the same limit.
    Repeated {
        /// The offset of the second slot in bytes.
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
