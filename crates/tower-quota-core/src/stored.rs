//! Parts of the [stored form](crate::Entry::encode) for stores in another language, such as Lua.
//!
//! This module may change in any release.

pub use crate::algorithm::{KEPT_STAMPS, LONGEST_RETRY, MOST_COUNTED, MOST_HELD, MOST_MARKS};
pub use crate::bytes::{push_u56, read_u56};
pub use crate::entry::{FROM_FIRST_REQUEST, SlotHead, TRUSTED_LEAD, VERSION, WATCHED};
pub use crate::quota::{LONGEST_LOG, MOST_USED, YEAR};
