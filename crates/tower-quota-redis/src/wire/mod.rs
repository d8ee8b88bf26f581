//! Defines the messages between the store and its script. `script/numbers.lua` describes every
//! byte.

mod reply;
mod request;

use tower_quota_core::{Algorithm, stored};

pub(crate) use self::reply::{Reply, Unreadable};
pub(crate) use self::request::{BatchRequest, Call};

macro_rules! shared_constants {
    ($($kind:ty { $($name:ident = $value:expr;)* })*) => {
        $($(
            // Allow dead code, because only Lua uses some of the constants.
            #[allow(dead_code)]
            pub(crate) const $name: $kind = $value;
        )*)*

        const SHARED: &[(&str, i64)] = &[$($((stringify!($name), $name as i64)),*),*];
    };
}

shared_constants! {
    u8 {
        // The version of the stored form, and flags of kinds of state.
        VERSION = stored::VERSION;
        FROM_FIRST_REQUEST = stored::FROM_FIRST_REQUEST;
        WATCHED = stored::WATCHED;
        // The operations of a call.
        CHECK = 0;
        CHARGE_ANYWAY = 1;
        REFUND = 2;
        RESET = 3;
        REFUSED_ALREADY = 4;
        PEEK = 5;
        RENEW = 6;
        // The first byte of the reply to one decision.
        REFUSED = 0;
        TAKEN = 1;
        DECIDED = 2;
        UNREADABLE = 3;
        NOT_WRITTEN = 4;
        // Comes before the reply if the decision has converted stored states.
        CONVERTED = 5;
        // Verdicts of one limit.
        ADMIT = 0;
        REFUSE = 1;
        NEVER = 2;
    }
    // The flags of a charge.
    u16 {
        QUEUES = 1;
        COUNTS_REFUSALS = 2;
        SHADOW = 4;
        AT_MOST = 8;
        PENALTY = 16;
        REFUNDABLE = 32;
        WINDOW = 64;
        REPORTED = 128;
        REPORTED_UNTIL_DEBT = 256;
        FORCED = 512;
    }
    u64 {
        // The longest retry time of a hold in microseconds.
        LONGEST_RETRY = stored::LONGEST_RETRY;
        // The number that is added to a balance, so that the sum is never negative.
        BALANCE_OFFSET = 1 << 52;
        // The bounds of counters, and of the instant of an entry.
        MOST_USED = stored::MOST_USED;
        MOST_COUNTED = stored::MOST_COUNTED;
        LONGEST_LOG = stored::LONGEST_LOG;
        MOST_HELD = stored::MOST_HELD;
        LONGEST_TTL = stored::YEAR;
        TRUSTED_LEAD = stored::TRUSTED_LEAD;
        // The factor of the window before in the count of a sliding window.
        SLIDING_BEFORE = 1 << 28;
    }
    usize {
        // The marks of a bucket, the unchanged stamps of an abridged log, and the bytes of an entry in a reply.
        MOST_MARKS = stored::MOST_MARKS;
        KEPT_STAMPS = stored::KEPT_STAMPS;
        MOST_EXPLAINED = 4_096;
    }
}

/// Replaces the shared constants by values, because dozens of local variables would take as long as a decision.
pub(crate) fn with_constants(lua: &str) -> String {
    let mut source = String::with_capacity(lua.len());
    let ends_name = |symbol: char| !symbol.is_ascii_alphanumeric() && symbol != '_';
    for word in lua.split_inclusive(ends_name) {
        let name = word.trim_end_matches(ends_name);
        let shared = SHARED.iter().find(|(shared, _)| *shared == name);
        // The name of an algorithm in capitals stands for the number of its kind of state.
        let variant = name.replace('_', "");
        let kind = Algorithm::ALL
            .iter()
            .find(|kind| format!("{kind:?}").to_uppercase() == variant);
        let kind = kind.map(|kind| kind.state_code().into());
        match shared.map(|(_, value)| *value).or(kind) {
            Some(value) => source += &word.replace(name, &value.to_string()),
            None => source += word,
        }
    }
    source
}
