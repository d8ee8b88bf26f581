//! Generates the table of features in documents and in code. A feature without a row fails a test.
//!
//! With `REWRITE=1`, the test writes `docs/reference/rules_and_code.md`.

#![allow(clippy::expect_used, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tower_quota_rules::QuotaText;

/// A feature, with the fields of a document or a quota's text, and the methods.
struct Row {
    feature: &'static str,
    fields: &'static [&'static str],
    quota: &'static str,
    code: &'static [&'static str],
}

const fn row(
    feature: &'static str,
    fields: &'static [&'static str],
    code: &'static [&'static str],
) -> Row {
    Row {
        feature,
        fields,
        quota: "",
        code,
    }
}

const fn quota(feature: &'static str, quota: &'static str, code: &'static [&'static str]) -> Row {
    Row {
        feature,
        fields: &[],
        quota,
        code,
    }
}

const ROWS: &[Row] = &[
    row(
        "limits of every request",
        &["limits"],
        &["Policy::new", "Policy::limit"],
    ),
    row(
        "limits of some requests",
        &["routes", "match"],
        &["Policy::choose"],
    ),
    row("a limit", &["name", "quota"], &["Limit::new"]),
    row("the counted key", &["key"], &["Limit::by"]),
    row("several keys together", &["all"], &["key::all"]),
    row(
        "the client's address",
        &[
            "client_ip",
            "trusted_proxies",
            "hops",
            "header",
            "prefix_v4",
            "prefix_v6",
        ],
        &["key::client_ip"],
    ),
    row("the cost", &["cost"], &["Limit::cost", "Limit::cost_with"]),
    row("the counted unit", &["unit"], &["Limit::unit"]),
    row(
        "conditions",
        &["when", "unless"],
        &["Limit::when", "Limit::unless"],
    ),
    row(
        "a request without the key",
        &["missing"],
        &["Limit::when_missing"],
    ),
    row(
        "turns",
        &["max_wait", "wait_jitter"],
        &["Limit::max_wait", "Limit::wait_jitter"],
    ),
    row(
        "refused requests count",
        &["count_refusals"],
        &["Limit::count_refusals"],
    ),
    row("no leased units", &["exact"], &["Limit::exact"]),
    row("a limit that only reports", &["shadow"], &["Limit::shadow"]),
    row("a part of a higher cost", &["at_most"], &["Limit::at_most"]),
    row(
        "a limit that no header field names",
        &["hidden"],
        &["Limit::hidden"],
    ),
    row("a flag or a tarpit", &["over"], &["Limit::over"]),
    row(
        "penalties",
        &["penalty", "after", "step", "most"],
        &["Limit::penalty"],
    ),
    row(
        "a block after a penalty",
        &["block"],
        &["RateLimitHandle::block"],
    ),
    row(
        "the final cost",
        &["settle", "on_abandoned"],
        &["Limit::settle", "Limit::on_abandoned"],
    ),
    row(
        "the longest hold of a reservation",
        &["longest_hold"],
        &["Limit::longest_hold"],
    ),
    row(
        "the answer in an outage",
        &["on_store_failure", "defaults"],
        &["Limit::on_store_failure", "Policy::on_store_failure"],
    ),
    row("another quota in an outage", &["when_degraded"], &[]),
    row(
        "local counters of several instances",
        &["instances"],
        &["Policy::instances"],
    ),
    row(
        "shares of regions",
        &["regions", "former_regions"],
        &["RegionShares"],
    ),
    row(
        "quotas of groups",
        &["tiers", "extends"],
        &["Limit::quota_with"],
    ),
    row(
        "the tier of a client",
        &["assign", "tier", "trusted_headers"],
        &["Tier", "CodeParts::tier"],
    ),
    row(
        "quotas of single clients",
        &["overrides"],
        &["Policy::overrides", "Limit::quota_of_key"],
    ),
    row("quotas from a database", &[], &["Policy::look_up"]),
    row(
        "requests that are not counted",
        &["skip"],
        &["Policy::skip"],
    ),
    row("requests that always pass", &["allow"], &["Policy::allow"]),
    row("requests that never pass", &["block"], &["Policy::block"]),
    row(
        "closed connections of refused clients",
        &["close_after"],
        &["RateLimitLayer::close_after"],
    ),
    row(
        "conditions on the target",
        &["method", "host", "path", "regex", "route"],
        &["when::path", "when::route"],
    ),
    row(
        "conditions on gRPC",
        &["grpc_service", "grpc_method"],
        &["when::grpc_service"],
    ),
    row(
        "conditions on the client",
        &["network", "claim", "cors_preflight"],
        &["when::address_in", "key::jwt_claim"],
    ),
    row(
        "conditions from code",
        &["code", "not"],
        &["CodeParts::condition", "when::not"],
    ),
    row(
        "sample requests",
        &[
            "tests", "request", "expect", "outcome", "headers", "address", "keys",
        ],
        &["Policy::explainer"],
    ),
    row("the limits of an organisation", &["include"], &[]),
    row(
        "a complete document",
        &["version", "end", "allow_empty"],
        &[],
    ),
    row("a try beside the rules in force", &[], &["Policy::dry_run"]),
    row("the version in metrics", &[], &["Policy::version"]),
    row("no requests at all", &[], &["Policy::unavailable"]),
    quota(
        "a unit of time",
        "10/second",
        &[
            "Quota::new",
            "Quota::per_second",
            "Quota::per_minute",
            "Quota::per_hour",
            "Quota::per_day",
            "Quota::per_week",
        ],
    ),
    quota(
        "months and years of fixed length",
        "9 per 30 days",
        &["Quota::per_month", "Quota::per_year"],
    ),
    quota(
        "days, weeks, months and years of a calendar",
        "9/month in Europe/Berlin",
        &["Quota::calendar"],
    ),
    quota("requests in progress", "2 at once", &["Quota::concurrent"]),
    quota("the expiry of a hold", "2 at once ttl 30s", &["Quota::ttl"]),
    quota("a burst", "9/second burst 20", &["Quota::burst"]),
    quota(
        "a token bucket",
        "9/second token_bucket",
        &["Quota::token_bucket"],
    ),
    quota("GCRA", "9/second gcra", &["Quota::gcra"]),
    quota(
        "a leaky bucket",
        "9/second leaky_bucket",
        &["Quota::leaky_bucket"],
    ),
    quota(
        "its queue",
        "9/second leaky_bucket queue 5",
        &["Quota::queue"],
    ),
    quota(
        "fixed windows",
        "9/day fixed_window",
        &["Quota::fixed_window"],
    ),
    quota(
        "windows with an offset",
        "9/day fixed_window offset 6h",
        &["Quota::offset"],
    ),
    quota(
        "windows from the first request",
        "9/day fixed_window from_first_request",
        &["Quota::from_first_request"],
    ),
    quota(
        "a sliding window",
        "9/minute sliding_window",
        &["Quota::sliding_window"],
    ),
    quota("a log", "9/minute sliding_log", &["Quota::sliding_log"]),
    quota(
        "an algorithm by its name",
        "9/minute gcra",
        &["Quota::algorithm"],
    ),
    quota("a share of a quota", "", &["Quota::divided"]),
    quota("a quota with more units", "", &["Quota::raised"]),
];

/// Methods that read a quota, and methods of derived traits.
const READERS: &[&str] = &[
    "at",
    "capacity",
    "clone",
    "default",
    "eq",
    "fmt",
    "for_waits_of",
    "from",
    "grain",
    "hash",
    "period",
    "refill",
    "units",
    "window",
    "window_offset",
    "into",
    "keys",
];

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns the methods of limits, policies and quotas in the listings of the public interface.
fn methods() -> BTreeSet<String> {
    let mut methods = BTreeSet::new();
    for (file, start, kind) in [
        ("tower-quota.txt", "tower_quota::Limit::", "Limit"),
        ("tower-quota.txt", "tower_quota::policy::Policy::", "Policy"),
        ("tower-quota-core.txt", "tower_quota_core::Quota::", "Quota"),
    ] {
        let listing = fs::read_to_string(folder().join("api").join(file)).expect("a listing");
        for line in listing.lines().filter(|line| line.contains("fn ")) {
            let Some((_, rest)) = line.split_once(&format!("fn {start}")) else {
                continue;
            };
            let end = rest.find(['(', '<']).expect("a signature");
            let name = rest[..end].trim_start_matches("try_");
            if !READERS.contains(&name) {
                methods.insert(format!("{kind}::{name}"));
            }
        }
    }
    methods
}

/// Collects the names of all fields in the schema.
fn fields(schema: &Value, found: &mut BTreeSet<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        found.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(map) => map.values().for_each(|value| fields(value, found)),
        Value::Array(all) => all.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

fn page(known: &BTreeSet<String>) -> String {
    let mut page = String::from(
        "# Rules and code\n\nWhat you write in a [document](rules.md), and what in Rust. Use\n\
         [`LiveOptions::with_policy`](../guide/live_rules.md#limits-from-your-code) for a feature that documents do not have.\n\n\
         | feature | document | code |\n|---|---|---|\n",
    );
    for Row {
        feature,
        fields,
        quota,
        code,
    } in ROWS
    {
        let quoted = |names: &[&str]| -> String {
            let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            quoted.join(", ")
        };
        let has_quota = !quota.is_empty() && quota.parse::<QuotaText>().is_ok();
        let document = match fields.iter().all(|field| known.contains(*field)) {
            true if !fields.is_empty() => quoted(fields),
            _ if has_quota => quoted(&[quota]),
            _ => "only in code".into(),
        };
        let code = if code.is_empty() {
            "only in documents".into()
        } else {
            quoted(code)
        };
        if document != "only in code" || code != "only in documents" {
            writeln!(page, "| {feature} | {document} | {code} |").expect("a string");
        }
    }
    page
}

#[test]
fn every_feature_has_a_row() {
    let mut known = BTreeSet::new();
    fields(tower_quota_rules::schema().as_value(), &mut known);
    let code: BTreeSet<&str> = ROWS.iter().flat_map(|row| row.code).copied().collect();
    let methods = methods();
    assert!(methods.len() > 50, "{methods:?}");
    for method in &methods {
        assert!(code.contains(method.as_str()), "{method} has no row");
    }
    let documented: BTreeSet<&str> = ROWS.iter().flat_map(|row| row.fields).copied().collect();
    for field in &known {
        assert!(
            documented.contains(field.as_str()),
            "the field {field} has no row"
        );
    }
    let path = folder().join("reference/rules_and_code.md");
    let fresh = page(&known);
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&path, &fresh).expect("written");
    }
    let published = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(published, fresh, "run with REWRITE=1");
}
