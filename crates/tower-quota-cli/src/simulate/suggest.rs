//! The lowest quota of a limit that refuses at most a share of its clients.
//!
//! The limit is replayed alone, with many quotas at once: each is a limit in shadow, so all of them are decided beside
//! each other, each by its own counts. A client that no quota refuses is refused by no larger one, so the lowest quota is
//! found by narrowing: powers of four first, then sixteen steps between the two nearest, until they are neighbours.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use http::Response;
use serde::Serialize;
use tower_layer::Layer;
use tower_quota::{Limit, MemoryStore, Name, RateLimitLayer, response::RefusalBody};
use tower_quota_rules::{CostText, Document, LimitRule, QuotaText, RouteRule, Rules};
use tower_service::Service;

use super::clock::LogClock;
use super::progress::Progress;
use super::request::request;
use super::run::Source;
use super::service::LoggedService;
use super::share::Share;
use super::tally;
use crate::failure::Failure;
use crate::log::{LineReader, LogFile};

/// A suggested quota.
#[derive(Debug, Serialize)]
pub(crate) struct Suggestion {
    pub(crate) limit: String,
    /// The lowest quota that refuses at most the share of clients.
    pub(crate) quota: String,
    /// The quota of the document.
    pub(crate) now: String,
    /// The clients that the limit counts.
    pub(crate) clients: u64,
    /// The clients that the suggested quota refuses at least once.
    pub(crate) hit: u64,
    /// The times that the log was read.
    pub(crate) passes: u32,
}

/// The quotas that are tried in one pass.
const TRIED: usize = 16;

/// The clients of a limit: a bit for each quota that refused them.
type Hits = HashMap<u64, u32>;

/// Finds the lowest quota for a limit. Tiers and overrides do not count: it is one quota for all clients.
pub(crate) fn suggest(
    document: &Document,
    limit: &str,
    most: Share,
    source: Source<'_>,
) -> Result<Suggestion, Failure> {
    let (rule, route) = find(document, limit).ok_or_else(|| {
        Failure::Usage(format!(
            "the document has no limit {limit:?}: it has {}",
            names(document)
        ))
    })?;
    let mut tried: Vec<u64> = (0..TRIED)
        .filter_map(|exponent| 4_u64.checked_pow(u32::try_from(exponent).ok()?))
        .collect();
    let (mut low, mut high, mut clients, mut passes) = (0, None::<(u64, u64)>, 0, 0);
    loop {
        let before = (low, high);
        let mut quotas = Vec::with_capacity(tried.len());
        for units in &tried {
            match with_units(&rule.quota, *units) {
                Some(quota) if !has_room(rule, &quota) => low = *units,
                Some(quota) => quotas.push((*units, quota)),
                None => {}
            }
        }
        let mut hits = Hits::new();
        if !quotas.is_empty() {
            hits = replay(document, rule, route, &quotas, source)?;
            (clients, passes) = (hits.len() as u64, passes + 1);
        }
        for (position, (units, _)) in quotas.iter().enumerate() {
            let hit = hits
                .values()
                .filter(|refused| **refused >> position & 1 == 1)
                .count() as u64;
            if most.covers(hit, clients) {
                high = Some((*units, hit));
                break;
            }
            low = *units;
        }
        let Some((units, hit)) = high else {
            return Err(Failure::Problem(format!(
                "no quota of {limit:?} refuses at most that share of its clients"
            )));
        };
        // Of those in between none may be one that can be counted.
        if units - low <= 1 || before == (low, high) {
            let quota =
                with_units(&rule.quota, units).map_or_else(String::new, |quota| quota.to_string());
            let now = rule.quota.to_string();
            return Ok(Suggestion {
                limit: limit.to_owned(),
                quota,
                now,
                clients,
                hit,
                passes,
            });
        }
        let between = units - low;
        tried = (1..=TRIED as u64)
            .map(|step| low + (between * step).div_ceil(TRIED as u64 + 1))
            .collect();
        tried.dedup();
        tried.retain(|tried| *tried > low && *tried < units);
    }
}

/// Finds a limit, and the route that it is in.
fn find<'a>(document: &'a Document, limit: &str) -> Option<(&'a LimitRule, Option<&'a RouteRule>)> {
    let has_name = |rule: &&LimitRule| rule.name.as_str() == limit;
    let routed = |route: &'a RouteRule| Some((route.limits.iter().find(has_name)?, Some(route)));
    let listed = document
        .limits
        .iter()
        .find(has_name)
        .map(|rule| (rule, None));
    listed.or_else(|| document.routes.iter().find_map(routed))
}

fn names(document: &Document) -> String {
    let routed = document.routes.iter().flat_map(|route| &route.limits);
    let names: Vec<&str> = document
        .limits
        .iter()
        .chain(routed)
        .map(|rule| rule.name.as_str())
        .take(20)
        .collect();
    names.join(", ")
}

/// Returns whether a quota can admit a request of a limit. No document may have another.
fn has_room(rule: &LimitRule, quota: &QuotaText) -> bool {
    let cost = if let Some(CostText::Constant(units)) = rule.cost {
        units
    } else {
        1
    };
    rule.at_most
        || quota
            .quota()
            .for_waits_of(Limit::DEFAULT_MAX_WAIT)
            .capacity()
            >= cost
}

/// Returns a quota with other units, and its burst or queue in proportion. Some quotas cannot have so many.
fn with_units(quota: &QuotaText, units: u64) -> Option<QuotaText> {
    let old = quota.quota().units();
    let text = quota.to_string();
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let mut words = rest.split(' ');
    let mut scaled = format!("{units}{}", words.next().unwrap_or_default());
    let mut is_capacity = false;
    for word in words {
        let number = word.parse::<u64>().ok().filter(|_| is_capacity);
        is_capacity = matches!(word, "burst" | "queue");
        scaled.push(' ');
        match number {
            Some(number) => {
                let scaled_number =
                    (u128::from(number) * u128::from(units)).div_ceil(u128::from(old));
                scaled.push_str(&scaled_number.to_string());
            }
            None => scaled.push_str(word),
        }
    }
    scaled.parse().ok()
}

/// Reads the log once, and returns which quotas refuse which clients.
fn replay(
    document: &Document,
    rule: &LimitRule,
    route: Option<&RouteRule>,
    quotas: &[(u64, QuotaText)],
    source: Source<'_>,
) -> Result<Hits, Failure> {
    let candidate = |position: usize, quota: &QuotaText| {
        let name = format!("candidate-{position}").parse().ok()?;
        Some(LimitRule {
            name,
            quota: *quota,
            shadow: true,
            max_wait: None,
            penalty: None,
            ..rule.clone()
        })
    };
    let candidates: Vec<LimitRule> = quotas
        .iter()
        .enumerate()
        .filter_map(|(position, (_, quota))| candidate(position, quota))
        .collect();
    let positions: HashMap<Name, usize> = candidates
        .iter()
        .enumerate()
        .map(|(position, rule)| (Name::from(&rule.name), position))
        .collect();
    let mut alone = Document {
        version: document.version,
        defaults: document.defaults.clone(),
        client_ip: document.client_ip.clone(),
        skip: document.skip.clone(),
        allow: document.allow.clone(),
        block: document.block.clone(),
        ..Document::default()
    };
    match route {
        Some(route) => alone.routes.push(RouteRule {
            limits: candidates,
            ..route.clone()
        }),
        None => alone.limits = candidates,
    }
    let rules = Rules::new(alone).map_err(|problems| Failure::Problem(problems.to_string()))?;
    let hits = Arc::new(Mutex::new(Hits::new()));
    let (clock, noted) = (LogClock::default(), Arc::clone(&hits));
    let seed = [0; 16];
    let layer = RateLimitLayer::new(
        MemoryStore::with_clock(super::replay::ENTRIES, clock.clone()),
        rules.policy(),
    )
    .headers([])
    .on_refused(|_| Response::new(RefusalBody::default()))
    .on_decision(move |decided| {
        let Some((_, key)) = decided.keys().next() else {
            return;
        };
        let statuses = decided
            .decision()
            .into_iter()
            .flat_map(|decision| decision.statuses());
        let refusing = statuses.filter(|status| status.outcome.is_refusal());
        let bits = refusing
            .filter_map(|status| positions.get(&status.name))
            .fold(0, |bits, at| bits | 1_u32 << at);
        let mut hits = noted.lock().unwrap_or_else(PoisonError::into_inner);
        *hits.entry(tally::hash(key, &seed)).or_default() |= bits;
    });
    let mut service = layer.layer(LoggedService);
    let mut file = LogFile::open(source.path)?;
    let mut reader = LineReader::new(source.headers.to_vec());
    let progress = Progress::start(&file, source.shows_progress);
    let (mut line, mut lines) = (Vec::new(), 0);
    while file.next_line(&mut line)?.is_continue() {
        let Ok(record) = reader.read(&line) else {
            continue;
        };
        let Some(request) = request(&record) else {
            continue;
        };
        clock.set(record.micros);
        // Shadow limits make no request wait: the decision is made when the service is called.
        drop(service.call(request));
        lines += 1;
        progress.follow(&file, lines);
    }
    drop(service);
    drop(layer);
    let hits = core::mem::take(&mut *hits.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(hits)
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Usage(error.to_string())
    }
}
