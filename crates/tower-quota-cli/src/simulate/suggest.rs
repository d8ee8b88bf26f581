//! Searches for the lowest quota of a limit that refuses at most a share of its clients.
//!
//! A pass replays the limit alone, with many quotas at once, as shadow limits with separate counts.
//! A larger quota never refuses a client that a smaller quota admits, so the search narrows. The
//! first pass tries powers of four, the next passes sixteen steps between the two nearest quotas,
//! until they are neighbours.
//!
//! Attackers must not raise the quota, so clients far above the median client are left out.

use core::mem;
use std::collections::HashMap;

use serde_json::{Value, json};
use tower_quota::{Algorithm, Decided, Limit};
use tower_quota_rules::{CostText, Document, LimitRule, QuotaText, RouteRule, Rules, TextError};

use super::read::{LogSource, read};
use super::replay::Replay;
use super::share::Share;
use super::tally::hash;
use crate::failure::Failure;

#[derive(Debug)]
pub(super) struct Suggestion {
    pub(super) json: Value,
    pub(super) notes: Vec<String>,
}

const TRIED: u32 = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    requests: u64,
    /// The quotas that refused the client, with a bit for each.
    refused_by: u32,
}

pub(super) fn suggest(
    document: &Document,
    limit: &str,
    most: Share,
    leave_out: u32,
    source: LogSource<'_>,
) -> Result<Suggestion, Failure> {
    let named = |rule: &&LimitRule| rule.name.as_str() == limit;
    let Some(rule) = document.all_limits().find(named) else {
        let names = document.all_limits().map(|rule| rule.name.as_str());
        let names = names.take(20).collect::<Vec<_>>().join(", ");
        let text = format!("the document has no limit {limit:?}: it has {names}");
        return Err(Failure::Usage(text));
    };
    let mut routes = document.routes.iter();
    let route = routes.find(|route| route.limits.iter().any(|rule| rule.name.as_str() == limit));
    if rule.quota.quota().algorithm() == Algorithm::Concurrent {
        return Err(Failure::Usage(format!(
            "{limit:?} counts requests in progress, and a log has no end of a request: suggest the quota of another limit"
        )));
    }
    let mut tried: Vec<u64> = (0..TRIED).map(|exponent| 4_u64.pow(exponent)).collect();
    let mut low = 0;
    let mut best = None;
    loop {
        let mut quotas = Vec::new();
        for units in tried {
            match with_units(&rule.quota, units) {
                Some(quota) if has_room(rule, &quota) => quotas.push((units, quota)),
                Some(_) => low = units,
                // Skip a quota that is not representable.
                None => {}
            }
        }
        if !quotas.is_empty() {
            let candidates = quotas.iter().map(|(_, quota)| *quota).collect();
            let mut clients = replay(document, rule, route, candidates, source)?;
            clients.sort_unstable_by_key(|client| client.requests);
            let median = clients.get(clients.len().saturating_sub(1) / 2);
            let median_requests = median.map_or(0, |client| client.requests);
            let bound = median_requests.saturating_mul(leave_out.into());
            let counted = clients.partition_point(|client| client.requests <= bound);
            for (position, (units, quota)) in quotas.iter().enumerate() {
                let is_hit = |client: &&Client| client.refused_by >> position & 1 == 1;
                let hit = clients[..counted].iter().filter(is_hit).count() as u64;
                if !most.covers(hit, counted as u64) {
                    low = *units;
                    continue;
                }
                let json = json!({
                    "limit": limit,
                    "quota": quota.to_string(),
                    "now": rule.quota.to_string(),
                    "clients": counted,
                    "hit": hit,
                    "share": Share::of(hit, counted as u64),
                    "left_out": clients.len() - counted,
                    "median_requests": median_requests,
                });
                let mut notes = Vec::new();
                if counted < clients.len() {
                    notes.push(format!(
                        "the suggestion leaves out {} of the clients: each sent more than {leave_out} times the {median_requests} \
                         requests of the median client",
                        clients.len() - counted
                    ));
                }
                if !most.covers(1, counted as u64) {
                    notes.push(format!(
                        "{most} of {counted} clients is less than one client: the suggestion admits the busiest client that \
                         counts"
                    ));
                }
                best = Some((*units, Suggestion { json, notes }));
                break;
            }
        }
        let high = match &best {
            // End the search if no quota in between is representable.
            Some((high, _)) if high.saturating_sub(low) > 1 && !quotas.is_empty() => *high,
            _ => break,
        };
        let step = |step: u64| low + ((high - low) * step).div_ceil(u64::from(TRIED) + 1);
        tried = (1..=u64::from(TRIED)).map(step).collect();
        tried.dedup();
        tried.retain(|units| *units < high);
    }
    let suggestion = best.map(|(_, suggestion)| suggestion);
    suggestion.ok_or_else(|| {
        Failure::Problem(format!(
            "no quota of {limit:?} refuses at most {most} of its clients"
        ))
    })
}

/// Returns whether a quota can admit a request of the limit. Documents refuse other quotas.
fn has_room(rule: &LimitRule, quota: &QuotaText) -> bool {
    let cost = match rule.cost {
        Some(CostText::Constant(units)) => units,
        _ => 1,
    };
    let quota = quota.quota().for_waits_of(Limit::DEFAULT_MAX_WAIT);
    rule.at_most || quota.capacity() >= cost
}

/// Returns a quota with other units, and a proportional burst or queue, if it is
/// representable.
fn with_units(quota: &QuotaText, units: u64) -> Option<QuotaText> {
    let old = quota.quota().units();
    let text = quota.to_string();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let mut words = rest.split(' ');
    let mut scaled = format!("{units}{}", words.next().unwrap_or_default());
    let mut is_capacity = false;
    for word in words {
        scaled += &match word.parse::<u128>() {
            Ok(number) if is_capacity => {
                let number = (number * u128::from(units)).div_ceil(u128::from(old));
                format!(" {number}")
            }
            _ => format!(" {word}"),
        };
        is_capacity = matches!(word, "burst" | "queue");
    }
    scaled.parse().ok()
}

/// Reads the log once. Returns the clients and the quotas that refuse them.
fn replay(
    document: &Document,
    rule: &LimitRule,
    route: Option<&RouteRule>,
    quotas: Vec<QuotaText>,
    source: LogSource<'_>,
) -> Result<Vec<Client>, Failure> {
    let mut limits = Vec::new();
    for (position, quota) in quotas.into_iter().enumerate() {
        let name = format!("candidate-{position}").parse();
        limits.push(LimitRule {
            name: name.map_err(Failure::usage::<TextError>)?,
            quota,
            shadow: true,
            max_wait: None,
            over: None,
            penalty: None,
            ..rule.clone()
        });
    }
    let mut alone = Document {
        version: document.version,
        defaults: document.defaults.clone(),
        client_ip: document.client_ip.clone(),
        skip: document.skip.clone(),
        allow: document.allow.clone(),
        block: document.block.clone(),
        ..Document::default()
    };
    match route.cloned() {
        Some(route) => alone.routes.push(RouteRule { limits, ..route }),
        None => alone.limits = limits,
    }
    let rules = Rules::new(alone).map_err(|problems| Failure::Problem(problems.to_string()))?;
    let note = |clients: &mut HashMap<u64, Client>, decided: &Decided<'_>, _| {
        let (Some((_, key)), Some(decision)) = (decided.keys().next(), decided.decision) else {
            return;
        };
        let client = clients.entry(hash(key, &[0; 16])).or_default();
        client.requests += 1;
        // Match statuses to quotas by position, because both are in the order of the limits.
        for (position, status) in decision.statuses().iter().enumerate() {
            client.refused_by |= u32::from(status.outcome.is_refusal()) << position;
        }
    };
    let mut replay =
        Replay::new(&rules, HashMap::new(), note).map_err(Failure::at(source.path.display()))?;
    read(source, |micros, request| replay.decide(micros, request))
        .map_err(Failure::at(source.path.display()))?;
    let clients = mem::take(&mut *replay.notes());
    Ok(clients.into_values().collect())
}
