//! The report as text.

use core::fmt::Write;

use super::{Report, SideReport};
use crate::output::{Columns, grouped};
use crate::simulate::share::Share;

/// Returns the report for people.
pub(crate) fn text(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut out, report);
    out
}

fn write_report(out: &mut String, report: &Report) -> core::fmt::Result {
    let log = &report.log;
    writeln!(
        out,
        "{} requests from {} to {} UTC",
        grouped(log.requests),
        log.from,
        log.to
    )?;
    writeln!(
        out,
        "busiest second: {} requests at {}",
        grouped(log.busiest_second.requests),
        log.busiest_second.at
    )?;
    writeln!(
        out,
        "busiest minute: {} requests at {}",
        grouped(log.busiest_minute.requests),
        log.busiest_minute.at
    )?;
    match &report.old {
        None => side(out, "", &report.new, log.requests)?,
        Some(old) => {
            side(out, "old rules: ", old, log.requests)?;
            side(out, "new rules: ", &report.new, log.requests)?;
        }
    }
    if let Some(change) = &report.change {
        writeln!(out, "\nfrom the old rules to the new ones")?;
        writeln!(
            out,
            "{} requests are newly refused, {} newly admitted",
            grouped(change.newly_refused),
            grouped(change.newly_admitted)
        )?;
        for limit in &change.limits {
            let (hit, free) = (grouped(limit.newly_hit), grouped(limit.no_longer_hit));
            writeln!(
                out,
                "{}: {hit} clients are newly limited, {free} no longer",
                limit.limit
            )?;
        }
    }
    if let Some(suggestion) = &report.suggestion {
        let share = Share::of(suggestion.hit, suggestion.clients);
        writeln!(
            out,
            "\nsuggested quota of {}: {} (now {})",
            suggestion.limit, suggestion.quota, suggestion.now
        )?;
        let (hit, clients) = (grouped(suggestion.hit), grouped(suggestion.clients));
        writeln!(
            out,
            "it is the lowest that limits few enough clients: {hit} of {clients}, {share}"
        )?;
    }
    for (position, note) in report.notes.iter().enumerate() {
        writeln!(out, "{}note: {note}", if position == 0 { "\n" } else { "" })?;
    }
    Ok(())
}

/// Returns the counts of each outcome, and their names.
pub(super) const fn outcomes(side: &SideReport) -> [(u64, &'static str); 6] {
    [
        (side.admitted, "admitted"),
        (side.limited, "limited"),
        (side.queued, "queued"),
        (side.blocked, "blocked"),
        (side.missing_key, "without a key"),
        (side.uncounted, "not counted"),
    ]
}

fn side(out: &mut String, title: &str, side: &SideReport, requests: u64) -> core::fmt::Result {
    let counts = outcomes(side);
    let shown = counts
        .iter()
        .filter(|(count, name)| *count > 0 || matches!(*name, "admitted" | "limited"));
    let shown: Vec<String> = shown
        .map(|(count, name)| {
            format!(
                "{} {name} ({})",
                grouped(*count),
                Share::of(*count, requests)
            )
        })
        .collect();
    writeln!(out, "\n{title}{}", shown.join(", "))?;
    if let Some(peak) = &side.busiest_admitted_second {
        writeln!(
            out,
            "busiest second of what is admitted: {} requests at {}",
            grouped(peak.requests),
            peak.at
        )?;
    }
    let mut limits = Columns::new([
        "limit", "requests", "limited", "clients", "limited", "share", "peak/s", "retry", "wait",
    ]);
    for limit in &side.limits {
        limits.row([
            if limit.shadow {
                format!("{} (shadow)", limit.name)
            } else {
                limit.name.clone()
            },
            grouped(limit.requests),
            grouped(limit.limited),
            grouped(limit.clients),
            grouped(limit.clients_hit),
            Share::of(limit.clients_hit, limit.clients).to_string(),
            grouped(limit.busiest_second.requests),
            if limit.longest_retry_seconds == 0 {
                "-".into()
            } else {
                format!("{} s", limit.longest_retry_seconds)
            },
            if limit.longest_wait_millis == 0 {
                "-".into()
            } else {
                format!("{} ms", limit.longest_wait_millis)
            },
        ]);
    }
    write!(out, "\n{}", limits.text())?;
    if !side.clients.is_empty() {
        let mut clients = Columns::new([
            "limited client",
            "limit",
            "requests",
            "limited",
            "first",
            "last",
        ]);
        for client in &side.clients {
            clients.row([
                client.client.clone(),
                client.limit.clone(),
                grouped(client.requests.into()),
                grouped(client.limited.into()),
                client.first.clone(),
                client.last.clone(),
            ]);
        }
        write!(out, "\n{}", clients.text())?;
    }
    Ok(())
}
