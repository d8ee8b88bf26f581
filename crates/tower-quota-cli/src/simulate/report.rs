use std::collections::BTreeMap;

use serde_json::{Value, json};
use tower_quota::Algorithm;
use tower_quota_rules::Document;

use super::read::Lines;
use super::tally::Tally;

pub(super) fn report(
    lines: &Lines,
    tallies: &[Tally],
    [newly_refused, newly_admitted]: [u64; 2],
    rule_notes: Vec<String>,
    evicted: u64,
    top: usize,
) -> Value {
    let mut report = json!({ "log": lines });
    for (name, tally) in ["new", "old"].into_iter().zip(tallies) {
        report[name] = json!(tally);
        for (position, limit) in tally.limits.iter().enumerate() {
            let share = share(limit.clients_hit, limit.clients);
            report[name]["limits"][position]["clients_hit_share"] = share.into();
        }
        report[name]["clients"] = tally.most_limited(top).into();
    }
    if let [new, old] = tallies {
        report["change"] = json!({
            "newly_refused": newly_refused,
            "newly_admitted": newly_admitted,
            "limits": hit_changes(old, new),
        });
    }
    let mut notes = notes(lines, evicted);
    notes.extend(rule_notes);
    report["notes"] = notes.into();
    report
}

/// Returns a share in percent, rounded up, so a small part never appears as zero.
fn share(part: u64, all: u64) -> String {
    let millionths = (u128::from(part) * 1_000_000).div_ceil(u128::from(all.max(1)));
    let text = format!("{}.{:04}", millionths / 10_000, millionths % 10_000);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns a note about limits of requests in progress, which a log cannot replay.
pub(super) fn requests_in_progress(document: &Document) -> Option<String> {
    let limits = document.all_limits();
    let holds = limits.filter(|rule| rule.quota.quota().algorithm() == Algorithm::Concurrent);
    let names: Vec<&str> = holds.map(|rule| rule.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} count requests in progress: a log has no end of a request, so these limits refuse no request here",
            names.join(", ")
        )
    })
}

/// Returns the clients refused only by the old or only by the new rules, by the name of the limit.
fn hit_changes(old: &Tally, new: &Tally) -> Vec<Value> {
    let (old, new) = (old.hit(), new.hit());
    let mut changes = BTreeMap::<&str, [u64; 2]>::new();
    for (limit, _) in new.difference(&old) {
        changes.entry(limit).or_default()[0] += 1;
    }
    for (limit, _) in old.difference(&new) {
        changes.entry(limit).or_default()[1] += 1;
    }
    let change = |(limit, [newly_hit, no_longer_hit]): (&str, [u64; 2])| json!({ "limit": limit, "newly_hit": newly_hit, "no_longer_hit": no_longer_hit });
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
