//! Which pictures there are of a suite, and what each shows.

use std::error::Error;

/// One chart: figures of one kind, in groups of bars.
#[derive(Clone, Copy)]
pub(super) struct Picture {
    /// Of its file.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// The figure that is shown.
    pub(super) figure: &'static str,
    /// What the names of its cases begin with.
    pub(super) prefix: &'static str,
    pub(super) bars: Bars,
    /// What the names of its cases end with, from left to right.
    pub(super) groups: &'static [&'static str],
    /// Whether a table of the same figures goes with it. Where no picture has one, there is one of all figures.
    pub(super) has_table: bool,
}

/// What stands side by side.
#[derive(Clone, Copy)]
pub(super) enum Bars {
    /// The contenders of a case.
    Contenders,
    /// One contender in cases that differ in this, the middle part of their names.
    Cases(&'static [&'static str]),
}

const TRAFFIC: &[&str] = &["hot", "10k", "1m", "zipf", "10m"];

/// Nanoseconds of checks.
const fn checks(name: &'static str, title: &'static str, prefix: &'static str) -> Picture {
    let unit = "nanoseconds per check";
    Picture { name, title, unit, figure: "ns", prefix, bars: Bars::Contenders, groups: TRAFFIC, has_table: true }
}

/// What contenders take.
const fn taken(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    figure: &'static str,
    prefix: &'static str,
    groups: &'static [&'static str],
) -> Picture {
    Picture { name, title, unit, figure, prefix, bars: Bars::Contenders, groups, has_table: true }
}

/// Percentages in a flood, all of whose figures are in a table of their own.
const fn share(name: &'static str, title: &'static str, figure: &'static str, prefix: &'static str) -> Picture {
    Picture {
        name,
        title,
        unit: "percent, when so many keys as 1 to 100 times the places have come",
        figure,
        prefix,
        bars: Bars::Cases(&[
            "10-clients-per-100-places",
            "50-clients-per-100-places",
            "100-clients-per-100-places",
            "200-clients-per-100-places",
        ]),
        groups: &["1x", "5x", "20x", "100x"],
        has_table: false,
    }
}

const MEMORY: &[Picture] = &[
    checks("memory-1-limit-u64", "One limit, keys are numbers", "memory/1-limit/u64"),
    checks("memory-1-limit-str", "One limit, keys are 16 bytes of text", "memory/1-limit/str"),
    checks("memory-3-limits-u64", "Three limits, keys are numbers", "memory/3-limits/u64"),
    checks("memory-3-limits-str", "Three limits, keys are 16 bytes of text", "memory/3-limits/str"),
    checks("memory-two-threads-1-limit", "Two threads, one limit", "memory/two-threads/1-limit"),
    checks("memory-two-threads-3-limits", "Two threads, three limits", "memory/two-threads/3-limits"),
    taken("memory-bytes-1-limit", "Memory, one limit", "bytes per key", "bytes", "memory/bytes/1-limit", BYTES),
    taken("memory-bytes-3-limits", "Memory, three limits", "bytes per key", "bytes", "memory/bytes/3-limits", BYTES),
];

const BYTES: &[&str] = &["u64", "u64/10m", "str", "str/10m", "200-byte-keys"];

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
    taken("layer-http", "Over HTTP/1.1, under wrk", "requests per second", "requests/s", "layer", &["http"]),
];

const FLOOD: &[Picture] = &[
    share("flood-once-limited", "Keys that come once: limited clients refused", "limited %", "flood/once"),
    share("flood-once-ordinary", "Keys that come once: ordinary clients admitted", "ordinary %", "flood/once"),
    share("flood-limited-limited", "Keys limited at once: limited clients refused", "limited %", "flood/limited"),
    share("flood-limited-ordinary", "Keys limited at once: ordinary clients admitted", "ordinary %", "flood/limited"),
];

/// Those of a suite. Instructions are told by a table alone.
pub(super) fn pictures(suite: &str) -> Result<&'static [Picture], Box<dyn Error>> {
    match suite {
        "memory" => Ok(MEMORY),
        "layer" => Ok(LAYER),
        "flood" => Ok(FLOOD),
        "instructions" => Ok(&[]),
        other => Err(format!("there are no charts of the suite {other:?}").into()),
    }
}
