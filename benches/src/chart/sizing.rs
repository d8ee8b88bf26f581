//! The worked example of the page about sizing, from the measured costs of a decision.

use super::tables::{significant, written};
use super::{Reports, of};

/// Checks a second.
const RATE: f64 = 1_700_000.0;
/// The share of a core that a Redis should use on average, so that bursts and snapshots have room.
const BUSY: f64 = 0.6;

/// Returns a table of the cores and the bandwidth that 1.7 million checks a second need.
pub(super) fn example(reports: &Reports) -> Result<String, String> {
    let sizing = |case: &str, figure| of(&reports["sizing"], case, "tower-quota", figure);
    let mut text = String::from(
        "| 1.7 million checks/s, all of them | Redis cores | Redis servers | Gbit/s | service cores |\n\
         |---|---:|---:|---:|---:|\n",
    );
    let mut row = |name: &str, server_us: f64, bytes: f64, service_us: f64| {
        let cores = RATE * server_us / 1e6;
        text += &format!(
            "| {name} | {} | {} | {} | {} |\n",
            significant(cores),
            written((cores / BUSY).ceil()),
            significant(RATE * bytes * 8.0 / 1e9),
            significant(RATE * service_us / 1e6),
        );
    };
    for (name, case) in [
        (
            "one limit, a call for each decision",
            "sizing/wire/1-limit/1",
        ),
        ("one limit, 512 under way", "sizing/wire/1-limit/512"),
        ("three limits, 512 under way", "sizing/wire/3-limits/512"),
        (
            "client and everyone, 512 under way",
            "sizing/wire/3-limits-2-subjects/512",
        ),
    ] {
        let bytes = sizing(case, "bytes in")? + sizing(case, "bytes out")?;
        row(
            name,
            sizing(case, "server us")?,
            bytes,
            sizing(case, "client us")?,
        );
    }
    let leased = |figure| {
        let case = "distributed/8-instances/4x";
        of(&reports["distributed"], case, "tower-quota, leased", figure)
    };
    let bytes = sizing("sizing/wire/1-limit/1", "bytes in")?
        + sizing("sizing/wire/1-limit/1", "bytes out")?;
    let lease_us = sizing("sizing/lease", "ns")? / 1e3;
    row(
        "hot clients with leases",
        leased("redis us")?,
        bytes * leased("calls")?,
        lease_us,
    );
    let refusal_us = sizing("sizing/refusal", "ns")? / 1e3;
    row("refused from memory", 0.0, 0.0, refusal_us);
    Ok(text)
}
