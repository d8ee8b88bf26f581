//! The messages between the store and its script.
//!
//! The top of `script/numbers.lua` describes requests and replies byte by byte. Numbers that both sides know by name
//! are written here, once: [`with_constants`] puts their values into the Lua.

mod reply;
mod request;

use tower_quota_core::{Algorithm, stored};

pub(crate) use self::reply::{Reply, Unreadable};
pub(crate) use self::request::{Call, Request};

macro_rules! shared_constants {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(
            // Some are used in Lua only.
            #[allow(dead_code)]
            pub(crate) const $name: $kind = $value;
        )*

        /// The shared constants by name.
        const SHARED: &[(&str, i64)] = &[$((stringify!($name), $name as i64)),*];
    };
}

shared_constants! {
    // The stored form: its version, kinds of state and their flags.
    VERSION: u8 = stored::VERSION;
    BUCKET: u8 = Algorithm::TokenBucket.state_code();
    FIXED_WINDOW: u8 = Algorithm::FixedWindow.state_code();
    SLIDING_WINDOW: u8 = Algorithm::SlidingWindow.state_code();
    SLIDING_LOG: u8 = Algorithm::SlidingLog.state_code();
    HOLDS: u8 = Algorithm::Concurrent.state_code();
    FROM_FIRST_REQUEST: u8 = stored::FROM_FIRST_REQUEST;
    WATCHED: u8 = stored::WATCHED;
    // Operations.
    CHECK: u8 = 0;
    CHARGE_ANYWAY: u8 = 1;
    REFUND: u8 = 2;
    RESET: u8 = 3;
    REFUSED_ALREADY: u8 = 4;
    PEEK: u8 = 5;
    RENEW: u8 = 6;
    // Flags of a charge.
    QUEUES: u16 = 1;
    COUNTS_REFUSALS: u16 = 2;
    SHADOW: u16 = 4;
    AT_MOST: u16 = 8;
    PENALTY: u16 = 16;
    REFUNDABLE: u16 = 32;
    WINDOW: u16 = 64;
    REPORTED: u16 = 128;
    REPORTED_UNTIL_DEBT: u16 = 256;
    FORCED: u16 = 512;
    // The longest retry time of a hold, in microseconds.
    LONGEST_RETRY: u64 = stored::LONGEST_RETRY;
    // A balance is sent as a number that is never negative.
    BALANCE_OFFSET: u64 = 1 << 52;
    // What a reply to one decision begins with.
    REFUSED: u8 = 0;
    TAKEN: u8 = 1;
    DECIDED: u8 = 2;
    UNREADABLE: u8 = 3;
    NOT_WRITTEN: u8 = 4;
    // The stamps of an abridged log that are kept as they are, and the longest entry in a reply.
    KEPT_STAMPS: usize = stored::KEPT_STAMPS;
    MOST_EXPLAINED: usize = 4_096;
    // Verdicts of one limit.
    ADMIT: u8 = 0;
    REFUSE: u8 = 1;
    NEVER: u8 = 2;
    // The most marks of a bucket.
    MOST_MARKS: usize = stored::MOST_MARKS;
    // Bounds of what is counted, and of an entry's instant.
    MOST_USED: u64 = stored::MOST_USED;
    MOST_COUNTED: u64 = stored::MOST_COUNTED;
    LONGEST_LOG: u64 = stored::LONGEST_LOG;
    TRUSTED_LEAD: u64 = stored::TRUSTED_LEAD;
}

/// Returns Lua with the values of the shared constants in the place of their names.
///
/// The script would otherwise define dozens of locals in each call, which takes as long as a decision does.
pub(crate) fn with_constants(lua: &str) -> String {
    let mut source = String::with_capacity(lua.len());
    let ends_name = |symbol: char| !symbol.is_ascii_alphanumeric() && symbol != '_';
    for word in lua.split_inclusive(ends_name) {
        let name = word.trim_end_matches(ends_name);
        match SHARED.iter().find(|(shared, _)| *shared == name) {
            Some((_, value)) => source += &word.replace(name, &value.to_string()),
            None => source += word,
        }
    }
    source
}
