//! Compares the column of a store with `docs/reference/crossings.md`, or writes it.

use std::fmt;
use std::fs;
use std::sync::{Mutex, PoisonError};

use tower_quota_testkit::pairs::{Aspect, Fault, Pairs, Promise, World};

/// The head of the table of promises, which has a column for each store.
const TABLE: &str = "| a charge is |";
/// The head of the table of faults.
const FAULTS: &str = "| store | faults |";
/// The head of the table of bounds, which ends the page.
const BOUNDS: &str = "| store | a charge is | bounded by |";

/// Compares the promises and faults of a store with the page. With `REWRITE` in the environment, writes the page.
pub(crate) fn compare<W: World>(store: &str, pairs: &Pairs) {
    let rows: Vec<[String; 3]> = pairs
        .aspects
        .iter()
        .map(|aspect| row(pairs, *aspect))
        .collect();
    static ONE_WRITER: Mutex<()> = Mutex::new(());
    let _writer = ONE_WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/crossings.md"
    );
    let page = fs::read_to_string(path).unwrap();
    let fresh = rewritten(&page, store, &faults(W::FAULTS), &rows);
    if std::env::var_os("REWRITE").is_some() {
        fs::write(path, &fresh).unwrap();
    } else {
        assert_eq!(page, fresh, "run with REWRITE=1");
    }
}

/// Returns the words of the faults, without the instances.
fn faults(faults: &[Fault]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for fault in faults {
        let words = match fault {
            Fault::Restart(_) => "restart",
            Fault::Cut(_) => "cut",
            Fault::CutOwn(_) => "cut from the store of the instance",
            Fault::Forget => "loss of all entries",
            Fault::ForgetOwn(_) => "loss of the store of an instance",
            Fault::ForgetHolds => "loss of all sets of holds",
            Fault::Reshare => "changed shares",
            other => unreachable!("{other:?} has no words"),
        };
        if !all.contains(&words) {
            all.push(words);
        }
    }
    all.join(", ")
}

/// Returns the words of an aspect, the promise, and the reason of a bound.
fn row(pairs: &Pairs, aspect: Aspect) -> [String; 3] {
    let (mut cell, mut reason) = described(pairs.promise_of(aspect));
    for (meeting, _, promise) in pairs
        .exceptions
        .iter()
        .filter(|(_, other, _)| *other == aspect)
    {
        let (meeting, (bound, by)) = (words(meeting), described(*promise));
        cell += &format!("; {meeting}: {bound}");
        let and = if reason.is_empty() { "" } else { "; " };
        reason += &format!("{and}{meeting}: {by}");
    }
    for (_, other, name) in pairs.errors.iter().filter(|(one, ..)| *one == aspect) {
        cell += &format!("; with a {} on another key `{name}`", words(other));
    }
    [words(&aspect), cell, reason]
}

fn described(promise: Promise) -> (String, String) {
    let Promise::Bounded {
        quotas,
        excludes_forced,
        by,
    } = promise
    else {
        return ("exact".to_owned(), String::new());
    };
    let bound = match quotas {
        1 => "at most the quota".to_owned(),
        quotas => format!("at most {quotas} quotas"),
    };
    let forced = if excludes_forced {
        ", plus forced units"
    } else {
        ""
    };
    (bound + forced, by.to_owned())
}

/// Returns the words of a name such as `AtMost`.
fn words(name: &impl fmt::Debug) -> String {
    let mut words = String::new();
    for letter in format!("{name:?}").chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

fn rewritten(page: &str, store: &str, faults: &str, rows: &[[String; 3]]) -> String {
    let mut column = None;
    let mut lines = Vec::new();
    let (mut is_faults, mut is_bounds) = (false, false);
    for line in page.lines() {
        if line.starts_with(TABLE) {
            let mut cells = line.split('|').map(str::trim);
            column = cells.position(|cell| cell == store);
        }
        is_faults |= line.starts_with(FAULTS);
        is_bounds |= line.starts_with(BOUNDS);
        let mut cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let row = rows
            .iter()
            .find(|[words, ..]| cells.get(1) == Some(&words.as_str()));
        if let (Some(column), Some([_, cell, _]), false) = (column, row, is_bounds) {
            cells[column] = cell;
            lines.push(cells.join(" | ").trim().to_owned());
        } else if is_faults && !is_bounds && cells.get(1) == Some(&store) {
            lines.push(format!("| {store} | {faults} |"));
        } else if !(is_bounds && cells.get(1) == Some(&store)) {
            lines.push(line.to_owned());
        }
    }
    for (reason, aspects) in reasons(rows) {
        lines.push(format!("| {store} | {} | {reason} |", aspects.join(", ")));
    }
    let bounds = lines.iter().position(|line| line.starts_with(BOUNDS));
    if let Some(bounds) = bounds {
        lines[bounds + 2..].sort();
    }
    lines.join("\n") + "\n"
}

/// Returns each reason with the aspects that have it.
fn reasons(rows: &[[String; 3]]) -> Vec<(&str, Vec<&str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for [words, _, reason] in rows {
        if reason.is_empty() {
            continue;
        }
        match reasons.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, aspects)) => aspects.push(words),
            None => reasons.push((reason, vec![words])),
        }
    }
    reasons
}
