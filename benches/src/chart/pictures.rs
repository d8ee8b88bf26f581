//! The charts of each suite.

use std::error::Error;

/// One chart: figures of one kind, in groups of bars.
#[derive(Clone, Copy)]
pub(super) struct Picture {
    /// The name of its file, without the ending.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// The figure that is shown.
    pub(super) figure: &'static str,
    /// The beginning of its cases' names.
    pub(super) prefix: &'static str,
    pub(super) bars: Bars,
    /// The ends of its cases' names, from left to right.
    pub(super) groups: &'static [&'static str],
    /// A figure that all cases share, drawn as a line.
    pub(super) bound: Option<&'static str>,
    /// A table of the same figures goes with it. A suite without such a picture has one table of all figures.
    pub(super) has_table: bool,
}

/// The bars of a group.
#[derive(Clone, Copy)]
pub(super) enum Bars {
    /// The contenders of a case.
    Contenders,
    /// One contender in cases that differ in this, the middle part of their names.
    Cases(&'static [&'static str]),
}

/// Requests that find a partly used bucket.
const USED: &[&str] = &["hot", "10k", "1m", "zipf", "10m"];
/// Requests that find a full bucket, none, or an exhausted one.
const OTHERS: &[&str] = &[
    "hot/refilled",
    "10k/refilled",
    "1m/refilled",
    "new",
    "refused",
];

/// Nanoseconds of checks.
const fn checks(
    name: &'static str,
    title: &'static str,
    prefix: &'static str,
    groups: &'static [&'static str],
) -> Picture {
    taken(name, title, "nanoseconds per check", "ns", prefix, groups)
}

/// Figures of contenders.
const fn taken(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    figure: &'static str,
    prefix: &'static str,
    groups: &'static [&'static str],
) -> Picture {
    Picture {
        name,
        title,
        unit,
        figure,
        prefix,
        bars: Bars::Contenders,
        groups,
        bound: None,
        has_table: true,
    }
}

/// Percentages in a flood, all of whose figures are in a table of their own.
const fn share(
    name: &'static str,
    title: &'static str,
    figure: &'static str,
    prefix: &'static str,
) -> Picture {
    Picture {
        name,
        title,
        unit: "percent, after 1 to 100 times as many keys as places",
        figure,
        prefix,
        bars: Bars::Cases(&[
            "10-clients-per-100-places",
            "50-clients-per-100-places",
            "100-clients-per-100-places",
            "200-clients-per-100-places",
        ]),
        groups: &["1x", "5x", "20x", "100x"],
        bound: None,
        has_table: false,
    }
}

const MEMORY: &[Picture] = &[
    checks(
        "memory-1-limit-u64",
        "One limit, keys are numbers",
        "memory/1-limit/u64",
        USED,
    ),
    checks(
        "memory-1-limit-u64-others",
        "One limit, numbers: full again, new, refused",
        "memory/1-limit/u64",
        OTHERS,
    ),
    checks(
        "memory-1-limit-str",
        "One limit, keys are 16 bytes of text",
        "memory/1-limit/str",
        USED,
    ),
    checks(
        "memory-1-limit-str-others",
        "One limit, text: full again, new, refused",
        "memory/1-limit/str",
        OTHERS,
    ),
    checks(
        "memory-3-limits-u64",
        "Three limits, keys are numbers",
        "memory/3-limits/u64",
        USED,
    ),
    checks(
        "memory-3-limits-u64-others",
        "Three limits, numbers: full again, new, refused",
        "memory/3-limits/u64",
        OTHERS,
    ),
    checks(
        "memory-3-limits-str",
        "Three limits, keys are 16 bytes of text",
        "memory/3-limits/str",
        USED,
    ),
    checks(
        "memory-3-limits-str-others",
        "Three limits, text: full again, new, refused",
        "memory/3-limits/str",
        OTHERS,
    ),
    checks(
        "memory-mixes",
        "Three limits, requests that differ",
        "memory",
        &["mixed/u64/10k", "quotas-in-turn/u64/10k"],
    ),
    checks(
        "memory-two-threads-1-limit",
        "Two threads, one limit",
        "memory/two-threads/1-limit",
        USED,
    ),
    checks(
        "memory-two-threads-3-limits",
        "Two threads, three limits",
        "memory/two-threads/3-limits",
        USED,
    ),
    taken(
        "memory-bytes-1-limit",
        "Memory, one limit",
        "bytes per key",
        "bytes",
        "memory/bytes/1-limit",
        BYTES,
    ),
    taken(
        "memory-bytes-3-limits",
        "Memory, three limits",
        "bytes per key",
        "bytes",
        "memory/bytes/3-limits",
        BYTES,
    ),
];

const BYTES: &[&str] = &["u64", "u64/10m", "str", "str/10m", "200-byte-keys"];

const LIMITER: &[Picture] = &[
    checks(
        "limiter-1-limit-u64",
        "Limiter: one limit, keys are numbers",
        "limiter/1-limit/u64",
        &["hot", "10k", "10k-refilled", "1m", "new", "refused"],
    ),
    checks(
        "limiter-client-and-everyone",
        "A limit of each client and a limit of everyone",
        "limiter/client-and-everyone",
        &["hot", "10k", "1m"],
    ),
    checks(
        "limiter-client-and-everyone-two-threads",
        "Two threads, a limit of each client and a limit of everyone",
        "limiter/client-and-everyone/two-threads",
        &["hot", "10k", "1m"],
    ),
];

const LAYER: &[Picture] = &[
    taken(
        "layer-added",
        "What a layer adds to an admitted request",
        "nanoseconds per request",
        "added",
        "layer",
        &["plain", "headers", "plain/3-limits", "headers/3-limits"],
    ),
    taken(
        "layer-refused",
        "A refused request",
        "nanoseconds per request",
        "ns",
        "layer",
        &["refused", "refused/3-limits"],
    ),
    taken(
        "layer-http",
        "Over HTTP/1.1, under wrk",
        "requests per second",
        "requests/s",
        "layer",
        &["http"],
    ),
];

const FLOOD: &[Picture] = &[
    share(
        "flood-once-limited",
        "Keys that come once: limited clients refused",
        "limited %",
        "flood/once",
    ),
    share(
        "flood-once-ordinary",
        "Keys that come once: ordinary clients admitted",
        "ordinary %",
        "flood/once",
    ),
    share(
        "flood-limited-limited",
        "Keys limited at once: limited clients refused",
        "limited %",
        "flood/limited",
    ),
    share(
        "flood-limited-ordinary",
        "Keys limited at once: ordinary clients admitted",
        "ordinary %",
        "flood/limited",
    ),
];

const DISTRIBUTED: &[Picture] = &[Picture {
    bound: Some("allowed"),
    has_table: false,
    ..taken(
        "distributed-admitted",
        "One hot key over several instances with one Redis",
        "requests admitted; the line is what the quota allows; trypema and limitador count in memory and promise no exact total",
        "admitted",
        "distributed",
        &["2-instances/2x", "8-instances/2x", "8-instances/4x"],
    )
}];

/// Returns the pictures of a suite. Some have tables only.
pub(super) fn pictures(suite: &str) -> Result<&'static [Picture], Box<dyn Error>> {
    match suite {
        "memory" => Ok(MEMORY),
        "layer" => Ok(LAYER),
        "flood" => Ok(FLOOD),
        "limiter" => Ok(LIMITER),
        "distributed" => Ok(DISTRIBUTED),
        "distance" | "instructions" | "outage" | "redis" | "reload" | "rules" | "simulation" => {
            Ok(&[])
        }
        other => Err(format!("there are no charts of the suite {other:?}").into()),
    }
}
