//! What travels between the store and its script.
//!
//! The top of `script/numbers.lua` describes requests and replies byte by byte. Numbers that both sides know by name are
//! written here, once: [`lua_constants`] makes the Lua of them.

mod limit;
mod reply;
mod request;

use std::fmt::Write;

pub(crate) use self::reply::{Reply, Unreadable};
pub(crate) use self::request::Request;

macro_rules! shared_constants {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(
            // Some are of use in Lua only.
            #[allow(dead_code)]
            pub(crate) const $name: $kind = $value;
        )*

        /// Returns the Lua that defines the shared constants.
        pub(crate) fn lua_constants() -> String {
            let mut lua = String::new();
            $(
                // Writing to a string does not fail.
                let _ = writeln!(lua, "local {} = {}", stringify!($name), $name);
            )*
            lua
        }
    };
}

shared_constants! {
    // The version of the stored form.
    VERSION: u8 = 1;
    // Kinds of state, and the flag of windows that start with their first request.
    BUCKET: u8 = 0;
    FIXED_WINDOW: u8 = 1;
    SLIDING_WINDOW: u8 = 2;
    SLIDING_LOG: u8 = 3;
    FROM_FIRST_REQUEST: u8 = 16;
    // The offset of a quota whose windows start with their first request, in the script.
    FIRST_REQUEST: i8 = -1;
    // Operations.
    CHECK: u8 = 0;
    CHARGE_ANYWAY: u8 = 1;
    REFUND: u8 = 2;
    RESET: u8 = 3;
    REFUSED_ALREADY: u8 = 4;
    PEEK: u8 = 5;
    // Flags of a charge.
    QUEUES: u8 = 1;
    COUNTS_REFUSALS: u8 = 2;
    SHADOW: u8 = 4;
    AT_MOST: u8 = 8;
    PENALTY: u8 = 16;
    // What a reply to one decision begins with.
    REFUSED: u8 = 0;
    TAKEN: u8 = 1;
    DECIDED: u8 = 2;
    UNREADABLE: u8 = 3;
    // Verdicts of one limit.
    ADMIT: u8 = 0;
    REFUSE: u8 = 1;
    NEVER: u8 = 2;
    // The most grains that a bucket counts as used, and the most units that a window counts.
    MOST_USED: u64 = 1 << 51;
    MOST_COUNTED: u64 = 1 << 51;
    // How far ahead of the clock an entry may be, beyond the time that its limits take, in microseconds.
    TRUSTED_LEAD: u64 = 60_000_000;
}

/// Appends the lower 56 bits of a number.
fn push_u56(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes()[..7]);
}
