//! The names of counters.
//!
//! A counter is named by the domain and the entries of a descriptor. Every part has its length before it, so no two
//! descriptors have the same name, whatever a client writes into a value.

use tower_quota_core::Name;

use crate::messages::descriptors::rate_limit_descriptor::Entry;

/// The kind of the keys of all counters.
pub(crate) const SCOPE: Name = Name::new("envoy");
/// The name of all limits. The name of a counter tells whether the limit comes with the descriptor.
pub(crate) const LIMIT: Name = Name::new("envoy");

/// Appends a text.
pub(crate) fn push(counter: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    // The length in LEB128, which is a byte for most texts.
    while let Err(_) | Ok(0x80..) = u8::try_from(length) {
        counter.push(0x80 | length.to_le_bytes()[0]);
        length >>= 7;
    }
    counter.push(length.to_le_bytes()[0]);
    counter.extend_from_slice(text.as_bytes());
}

/// Appends an entry, by its value or by the pattern that its values share.
pub(crate) fn push_entry(counter: &mut Vec<u8>, entry: &Entry, shared: Option<&str>) {
    push(counter, &entry.key);
    counter.push(shared.is_some().into());
    push(counter, shared.unwrap_or(&entry.value));
}
