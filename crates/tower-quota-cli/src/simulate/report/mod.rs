//! The report of a simulation: the counts that are shown as text, as JSON, and on a page with charts.

mod chart;
pub(crate) mod html;
mod side;
pub(crate) mod text;

use serde::Serialize;

pub(crate) use self::side::SideReport;

use super::outcome::ReplayOutcome;
use super::run::{Lines, Simulation};
use super::suggest::Suggestion;
use crate::log::time;

/// The result of a simulation.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) log: LogReport,
    /// The result of the new rules.
    pub(crate) new: SideReport,
    /// The result of the old rules, if there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<SideReport>,
    /// The change from the old rules to the new ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<ChangeReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suggestion: Option<Suggestion>,
    /// Reasons to read the numbers with care.
    pub(crate) notes: Vec<String>,
}

/// The contents of the log.
#[derive(Debug, Serialize)]
pub(crate) struct LogReport {
    pub(crate) requests: u64,
    pub(crate) unreadable_lines: u64,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) busiest_second: PeakReport,
    pub(crate) busiest_minute: PeakReport,
}

/// The busiest span.
#[derive(Debug, Serialize)]
pub(crate) struct PeakReport {
    pub(crate) requests: u64,
    pub(crate) at: String,
}

/// The requests and clients whose outcome the new rules change.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeReport {
    /// The requests that the old rules admit and the new ones refuse.
    pub(crate) newly_refused: u64,
    /// The requests that the old rules refuse and the new ones admit.
    pub(crate) newly_admitted: u64,
    /// All requests with another outcome.
    pub(crate) outcomes: Vec<OutcomeChange>,
    /// The clients of each limit that are refused by one of the documents alone.
    pub(crate) limits: Vec<HitChange>,
}

/// The number of requests with one outcome before and another after.
#[derive(Debug, Serialize)]
pub(crate) struct OutcomeChange {
    pub(crate) old: ReplayOutcome,
    pub(crate) new: ReplayOutcome,
    pub(crate) requests: u64,
}

/// The clients of a limit that are refused under one document alone.
#[derive(Debug, Serialize)]
pub(crate) struct HitChange {
    pub(crate) limit: String,
    pub(crate) newly_hit: u64,
    pub(crate) no_longer_hit: u64,
}

impl Report {
    pub(crate) fn of(simulation: &Simulation, top: usize, suggestion: Option<Suggestion>) -> Self {
        let mut sides = simulation
            .replays
            .iter()
            .map(|replay| SideReport::of(&replay.tally(), top));
        let new = sides.next().unwrap_or_default();
        let old = sides.next();
        let evicted = simulation
            .replays
            .iter()
            .map(super::replay::Replay::evicted)
            .sum();
        Self {
            log: LogReport::of(&simulation.lines),
            new,
            change: old.is_some().then(|| change(simulation)),
            old,
            suggestion,
            notes: notes(&simulation.lines, evicted),
        }
    }
}

impl LogReport {
    fn of(lines: &Lines) -> Self {
        let peak = |(at, requests)| PeakReport {
            requests,
            at: time::text(at),
        };
        Self {
            requests: lines.requests,
            unreadable_lines: lines.unreadable.iter().sum(),
            from: time::text(lines.span.0),
            to: time::text(lines.span.1),
            busiest_second: peak(lines.busiest_second.most()),
            busiest_minute: peak(lines.busiest_minute.most()),
        }
    }
}

fn change(simulation: &Simulation) -> ChangeReport {
    let outcomes: Vec<OutcomeChange> = simulation
        .differences
        .iter()
        .map(|((old, new), requests)| OutcomeChange {
            old: ReplayOutcome::ALL[*old],
            new: ReplayOutcome::ALL[*new],
            requests: *requests,
        })
        .collect();
    let sum = |from: bool| {
        let turned = outcomes
            .iter()
            .filter(|change| change.old.is_admitted() == from && change.new.is_admitted() != from);
        turned.map(|change| change.requests).sum()
    };
    let (newly_refused, newly_admitted) = (sum(true), sum(false));
    let limits = match &simulation.replays[..] {
        [new, old] => side::hit_changes(&new.tally(), &old.tally()),
        _ => Vec::new(),
    };
    ChangeReport {
        newly_refused,
        newly_admitted,
        outcomes,
        limits,
    }
}

fn notes(lines: &Lines, evicted: u64) -> Vec<String> {
    let mut notes = Vec::new();
    let [form, time, request] = lines.unreadable;
    if form + time + request > 0 {
        notes.push(format!(
            "{} lines are no requests: {form} have another form, {time} no readable time, {request} no request of HTTP",
            form + time + request
        ));
    }
    if lines.exact_times == 0 {
        notes.push(
            "the log has times in seconds: requests of one second count as simultaneous, so bursts look larger than they \
             were and short limits stricter"
                .into(),
        );
    }
    if lines.out_of_order > 0 {
        notes.push(format!(
            "{} requests have an earlier time than the line before: they count at the later time, since servers write a \
             line when a response ends",
            lines.out_of_order
        ));
    }
    if lines.refused_in_log > 0 {
        notes.push(format!(
            "{} requests were answered 429 when they were logged: their clients may have asked less, or more, under other \
             limits",
            lines.refused_in_log
        ));
    }
    if evicted > 0 {
        notes.push(format!(
            "{evicted} counters were evicted: there are more clients than a store of ten million remembers"
        ));
    }
    notes
}
