//! Tests of the commands that answer a complaint.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use axum::http::header::ETAG;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::command::{Files, Ran, command};
use crate::service::{TOKEN, TestService};

const RULES: &str = "\
defaults: { key: header x-api-key }
limits: [{ name: minute, quota: 3/minute }, { name: day, quota: 1000/day }]
block: [{ key: \"bad_*\" }]
";

fn run(admin: &str, arguments: &[&str]) -> Ran {
    let mut command = command(arguments);
    command.env("TOWER_QUOTA_ADMIN", admin);
    command.env("TOWER_QUOTA_TOKEN", TOKEN);
    Ran::of(command.output().unwrap())
}

fn service() -> TestService {
    let service = TestService::start();
    let files = Files::new();
    run(&service.admin, &["put", &files.write("rules.yaml", RULES)]).expect(0);
    service
}

#[test]
fn refusals_of_client_are_found_by_time() {
    let service = service();
    for _ in 0..5 {
        service.ask("ann");
    }
    let find = |arguments: &[&str]| {
        let arguments = [&["refusals", "ann"], arguments].concat();
        run(&service.admin, &arguments)
    };
    let lists = find(&["--json", "--show-keys"]).json(0);
    let refusals = lists[0]["refusals"].as_array().unwrap();
    assert_eq!(refusals.len(), 2);
    assert_eq!(refusals[0]["key"], "ann");
    let at = refusals[0]["at"].as_str().unwrap();
    let of_day = &at[11..19];
    for (time, number) in [(at, 2), (of_day, 2), ("2026-01-01T00:00:00Z", 0)] {
        let found = find(&["--at", time, "--within", "10s", "--json"]).json(0);
        let found = found[0]["refusals"].as_array().unwrap().len();
        assert_eq!(found, number, "{time}");
    }
    let shown = find(&["--at", of_day]).expect(0);
    assert!(
        shown.starts_with("2 refusals from ") && shown.contains("(UTC)"),
        "{shown}"
    );
    assert!(
        shown.contains("limited") && shown.contains("minute"),
        "{shown}"
    );
    let early = find(&["--at", "2026-01-01T00:00:00Z"]).expect(0);
    assert!(early.contains("remembers its refusals since"), "{early}");
    assert_eq!(find(&["--at", "noon"]).code, 2);
}

#[test]
fn refusals_of_several_instances_are_listed() {
    let (one, other) = (service(), service());
    for _ in 0..4 {
        one.ask("ann");
        other.ask("ann");
    }
    let lists = run(
        &one.admin,
        &["refusals", "ann", "--also", &other.admin, "--json"],
    )
    .json(0);
    let numbers = lists.as_array().unwrap().iter();
    let numbers: Vec<usize> = numbers
        .map(|list| list["refusals"].as_array().unwrap().len())
        .collect();
    assert_eq!(numbers, [1, 1]);
}

#[test]
fn find_names_the_entry_that_blocks() {
    let service = service();
    let found = run(&service.admin, &["find", "bad_1"]).expect(0);
    assert!(
        found.contains("block[0]") && found.contains("version 1 of the rules"),
        "{found}"
    );
    let ann = run(&service.admin, &["find", "ann"]).expect(0);
    assert!(ann.contains("minute, day"), "{ann}");
}

#[test]
fn peek_of_blocked_client_names_the_block() {
    let service = service();
    let block = ["block", "ann", "--for", "1h", "--reason", "stolen"];
    run(&service.admin, &block).expect(0);
    let shown = run(&service.admin, &["peek", "minute", "ann"]).expect(1);
    for part in [
        "outcome: blocked",
        "listed reason: stolen",
        "listed author: on-call",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!shown.contains("unknown client"), "{shown}");
    let removed = run(
        &service.admin,
        &["unblock", "ann", "--scope", "header x-api-key"],
    );
    assert!(removed.expect(0).contains("stolen"));
}

/// Serves an admin API whose counters fail, and counts the calls of a counter. Returns the address.
fn failing_counters(calls: Arc<AtomicUsize>) -> (tokio::runtime::Runtime, String) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let address = runtime.block_on(async {
        let block = json!({
            "id": "3f2a", "kind": "block", "reason": "", "author": "on-call",
            "target": { "key": { "scope": "header x-api-key", "hash": "3f2a" } },
        });
        let peek = async move || {
            calls.fetch_add(1, Ordering::Relaxed);
            let problem = json!({ "detail": "the store failed" });
            (StatusCode::SERVICE_UNAVAILABLE, Json(problem))
        };
        let router = Router::new()
            .route("/v1/blocks", put(async move || Json::<Value>(block)))
            .route("/v1/rules", get(async || ([(ETAG, "\"1-a\"")], RULES)))
            .route("/v1/clients/peek", post(peek));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    });
    (runtime, format!("http://{address}"))
}

#[test]
fn block_is_printed_while_counters_fail() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (_runtime, admin) = failing_counters(Arc::clone(&calls));
    let out = run(&admin, &["block", "ann", "--for", "1h"]).expect(0);
    assert!(out.contains("id: 3f2a"), "{out}");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}
