//! The report of a simulation, as JSON, as text, and as a page with charts.
//!
//! Text and page show the same sections: lines, perhaps a chart, and tables.

mod chart;
pub(super) mod html;

use std::collections::BTreeMap;

use serde::Serialize;

use super::outcome::ReplayOutcome;
use super::read::Lines;
use super::series::Series;
use super::share::Share;
use super::suggest::Suggestion;
use super::tally::{LimitedClient, Tally};
use crate::output::{Table, grouped};

/// The result of a simulation.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    log: Lines,
    /// The result of the new rules.
    new: Side,
    /// The result of the old rules, if there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Side>,
    /// The change from the old rules to the new ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Change>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<Suggestion>,
    /// Reasons to read the numbers with care.
    notes: Vec<String>,
}

/// The result of one document.
#[derive(Debug, Default, Serialize)]
pub(super) struct Side {
    #[serde(flatten)]
    tally: Tally,
    /// The clients that are refused most.
    clients: Vec<LimitedClient>,
}

/// The requests and clients whose outcome the new rules change.
#[derive(Debug, Default, Serialize)]
pub(super) struct Change {
    /// The requests that the old rules admit and the new ones refuse.
    pub(super) newly_refused: u64,
    /// The requests that the old rules refuse and the new ones admit.
    pub(super) newly_admitted: u64,
    limits: Vec<HitChange>,
}

/// The clients of a limit that are refused under one document alone. Limits are the same by name.
#[derive(Debug, Serialize)]
struct HitChange {
    limit: String,
    newly_hit: u64,
    no_longer_hit: u64,
}

/// A part of the report.
struct Section<'a> {
    title: &'static str,
    lines: Vec<String>,
    series: Option<&'a Series>,
    tables: Vec<Table>,
}

impl Side {
    pub(super) fn new(tally: Tally, top: usize) -> Self {
        Self {
            clients: tally.most_limited(top),
            tally,
        }
    }

    fn section(&self, title: &'static str, requests: u64) -> Section<'_> {
        let counts =
            ReplayOutcome::ALL.map(|(outcome, name)| (self.tally.outcomes[&outcome], name));
        let shown = counts
            .iter()
            .filter(|(count, name)| *count > 0 || matches!(*name, "admitted" | "limited"));
        let shown: Vec<String> = shown
            .map(|(count, name)| {
                let share = Share::of(*count, requests);
                format!("{} {name} ({share})", grouped(*count))
            })
            .collect();
        let admitted = &self.tally.busiest_admitted_second;
        let mut limits = Table::new(&[
            "limit", "requests", "limited", "clients", "limited", "share", "peak/s", "retry",
            "wait",
        ]);
        for limit in &self.tally.limits {
            let unit = |number: u64, unit| match number {
                0 => "-".to_owned(),
                number => format!("{number} {unit}"),
            };
            let shadow = if limit.shadow { " (shadow)" } else { "" };
            limits.row([
                format!("{}{shadow}", limit.name),
                grouped(limit.requests),
                grouped(limit.limited),
                grouped(limit.clients),
                grouped(limit.clients_hit),
                Share::of(limit.clients_hit, limit.clients).to_string(),
                grouped(limit.busiest_second.requests()),
                unit(limit.longest_retry_seconds, "s"),
                unit(limit.longest_wait_millis, "ms"),
            ]);
        }
        let heads = [
            "limited client",
            "limit",
            "requests",
            "limited",
            "first",
            "last",
        ];
        let mut clients = Table::new(&heads);
        for client in &self.clients {
            clients.row([
                client.client.clone(),
                client.limit.clone(),
                grouped(client.requests.into()),
                grouped(client.limited.into()),
                client.first.clone(),
                client.last.clone(),
            ]);
        }
        Section {
            title,
            lines: vec![
                shown.join(", "),
                format!("busiest second of what is admitted: {admitted}"),
            ],
            series: Some(&self.tally.series),
            tables: vec![limits, clients],
        }
    }
}

impl Report {
    pub(super) fn new(
        log: Lines,
        new: Side,
        old: Option<Side>,
        change: Change,
        suggestion: Option<Suggestion>,
        evicted: u64,
    ) -> Self {
        let change = old.as_ref().map(|old| Change {
            limits: hit_changes(&old.tally, &new.tally),
            ..change
        });
        Self {
            notes: notes(&log, evicted),
            log,
            new,
            old,
            change,
            suggestion,
        }
    }

    /// Returns the report for people.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for section in self.sections() {
            if !out.is_empty() {
                out += &format!("\n{}\n", section.title);
            }
            for line in section.lines {
                out += &format!("{line}\n");
            }
            for table in section.tables {
                out += &format!("\n{}", table.text());
            }
        }
        out
    }

    fn sections(&self) -> Vec<Section<'_>> {
        let lines = |title, lines| Section {
            title,
            lines,
            series: None,
            tables: Vec::new(),
        };
        let log = &self.log;
        let requests = grouped(log.requests);
        let mut sections = vec![lines(
            "The log",
            vec![
                format!("{requests} requests from {} to {} UTC", log.from, log.to),
                format!("busiest second: {}", log.busiest_second),
                format!("busiest minute: {}", log.busiest_minute),
            ],
        )];
        if let Some(old) = &self.old {
            sections.push(old.section("Old rules", log.requests));
        }
        sections.push(self.new.section("New rules", log.requests));
        if let Some(change) = &self.change {
            let mut limits = Table::new(&["limit", "clients newly limited", "no longer limited"]);
            for limit in &change.limits {
                limits.row([
                    limit.limit.clone(),
                    grouped(limit.newly_hit),
                    grouped(limit.no_longer_hit),
                ]);
            }
            let (refused, admitted) = (change.newly_refused, change.newly_admitted);
            let line = format!(
                "{} requests are newly refused, {} newly admitted",
                grouped(refused),
                grouped(admitted)
            );
            sections.push(Section {
                tables: vec![limits],
                ..lines("From the old rules to the new ones", vec![line])
            });
        }
        if let Some(suggestion) = &self.suggestion {
            sections.push(lines("Suggestion", suggestion.lines()));
        }
        if !self.notes.is_empty() {
            sections.push(lines("Notes", self.notes.clone()));
        }
        for section in &mut sections {
            section.tables.retain(|table| !table.rows.is_empty());
        }
        sections
    }
}

fn hit_changes(old: &Tally, new: &Tally) -> Vec<HitChange> {
    let (old, new) = (old.hit(), new.hit());
    let mut changes = BTreeMap::<&str, [u64; 2]>::new();
    for (limit, _) in new.difference(&old) {
        changes.entry(limit).or_default()[0] += 1;
    }
    for (limit, _) in old.difference(&new) {
        changes.entry(limit).or_default()[1] += 1;
    }
    let change = |(limit, [newly_hit, no_longer_hit]): (&str, [u64; 2])| HitChange {
        limit: limit.to_owned(),
        newly_hit,
        no_longer_hit,
    };
    changes.into_iter().map(change).collect()
}

fn notes(lines: &Lines, evicted: u64) -> Vec<String> {
    let [form, time, request] = lines.unreadable;
    let all = [
        (
            lines.unreadable_lines > 0,
            format!(
                "{} lines are no requests: {form} have another form, {time} no readable time, {request} no request of HTTP",
                lines.unreadable_lines
            ),
        ),
        (
            lines.exact_times == 0,
            "the log has times in seconds: requests of one second count as simultaneous, so bursts look larger than they \
             were and short limits stricter"
                .into(),
        ),
        (
            lines.out_of_order > 0,
            format!(
                "{} requests have an earlier time than the line before: they count at the later time, since servers write \
                 a line when a response ends",
                lines.out_of_order
            ),
        ),
        (
            lines.refused_in_log > 0,
            format!(
                "{} requests were answered 429 when they were logged: their clients may have asked less, or more, under \
                 other limits",
                lines.refused_in_log
            ),
        ),
        (
            evicted > 0,
            format!("{evicted} counters were evicted: there are more clients than a store of ten million remembers"),
        ),
    ];
    let applying = all.into_iter().filter(|(applies, _)| *applies);
    applying.map(|(_, note)| note).collect()
}
