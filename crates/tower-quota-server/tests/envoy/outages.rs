//! What calls get while the store fails.

use std::time::Duration;

use tonic::Code;
use tower_quota_core::Operation;
use tower_quota_server::envoy::{EnvoyDoor, EnvoyOptions};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::support::{limits, parsed, request, run, shown};

const TEXT: &str = "
domain: d
descriptors:
  - key: default
    rate_limit: { unit: minute, requests_per_unit: 5 }
  - key: allow
    rate_limit: { unit: minute, requests_per_unit: 5, on_store_failure: allow }
  - key: refuse
    rate_limit: { unit: minute, requests_per_unit: 5, on_store_failure: refuse }
  - key: error
    rate_limit: { unit: minute, requests_per_unit: 5, on_store_failure: error }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 5, on_store_failure: refuse }
  - key: open
    rate_limit: { unlimited: true }
";

fn failing(answer: ScriptedAnswer) -> EnvoyDoor<ScriptedStore> {
    let store = ScriptedStore::new();
    store.set_default(answer);
    EnvoyDoor::new(parsed(TEXT), store, EnvoyOptions::default())
}

#[test]
fn limits_choose_the_answer_of_an_outage() {
    let door = failing(ScriptedAnswer::error("connection refused"));
    for (ask, expected) in [
        (&["default=x"][..], &["OK", "OK"][..]),
        (&["allow=x", "open=x"], &["OK", "OK", "OK 4294967295"]),
        (&["refuse=x", "allow=x"], &["OVER", "OVER 0 1s", "OK"]),
        (&["refuse=x back:1"], &["OK", "OK"]),
        (&["shadow=x"], &["OK", "OK"]),
        (&["open=x", "nope=x"], &["OK", "OK 4294967295", "OK"]),
    ] {
        let response = run(door.decide(&request("d", ask))).unwrap();
        assert_eq!(shown(&response), expected, "{ask:?}");
    }
    let status = run(door.decide(&request("d", &["allow=x", "error=x"]))).unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}

#[test]
fn outage_meets_what_a_limit_can_be() {
    let text = "
domain: d
descriptors:
  - key: tokens
    rate_limit: { unit: minute, requests_per_unit: 5, post_charge: true, on_store_failure: refuse }
  - key: month
    rate_limit: { unit: month, requests_per_unit: 5, time_zone: UTC, on_store_failure: refuse, name: month }
  - key: log
    rate_limit: { every: 90s, requests_per_unit: 5, algorithm: sliding_log, on_store_failure: refuse }
  - key: quota
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 5, on_store_failure: refuse }
  - key: spare
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 5, algorithm: gcra, burst: 2 }
  - key: open
    rate_limit: { unlimited: true, replaces: [{ name: month }] }
  - key: none
    rate_limit: { unit: minute, requests_per_unit: 0, on_store_failure: error }
";
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::error("connection refused"));
    let door = EnvoyDoor::new(parsed(text), store, EnvoyOptions::default());
    for (ask, expected) in [
        (&["tokens=x hits:0"][..], &["OVER", "OVER 0 1s"][..]),
        (&["tokens=x back:1", "log=x back:1"], &["OK", "OK", "OK"]),
        (&["log=x", "spare=x"], &["OVER", "OVER 0 1s", "OK"]),
        (&["quota=x"], &["OVER", "OVER 0 1s"]),
        (&["quota=x", "spare=x"], &["OK", "OVER 0 1s", "OK"]),
        (&["month=x"], &["OVER", "OVER 0 1s"]),
        (&["month=x", "open=x"], &["OK", "OK", "OK 4294967295"]),
        (&["none=x"], &["OVER", "OVER 0"]),
        (
            &["none=x", "spare=x limit:9/DAY"],
            &["OVER", "OVER 0", "OK"],
        ),
    ] {
        let response = run(door.decide(&request("d", ask))).unwrap();
        assert_eq!(shown(&response), expected, "{ask:?}");
    }
}

#[test]
fn call_stays_refused_if_its_refund_fails() {
    let text = "
domain: d
descriptors:
  - key: tokens
    rate_limit: { unit: minute, requests_per_unit: 5, post_charge: true }
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 5 }
";
    let store = ScriptedStore::new();
    store.push(ScriptedAnswer::memory());
    store.set_default(ScriptedAnswer::error("connection refused"));
    let door = EnvoyDoor::new(parsed(text), store.clone(), EnvoyOptions::default());
    let response = run(door.decide(&request("d", &["tokens=x hits:9", "user=x"])));
    assert_eq!(shown(&response.unwrap())[..2], ["OVER", "OVER 0 60s"]);
    assert_eq!(store.operations().len(), 2);
}

#[test]
fn gateway_decides_outages_of_compatible_domains() {
    let store = ScriptedStore::new();
    store.set_default(ScriptedAnswer::error("connection refused"));
    let door = EnvoyDoor::new(limits("reference"), store, EnvoyOptions::default());
    let status = run(door.decide(&request("reference", &["minute=x"]))).unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the runtime's time is paused")]
fn slow_store_is_answered_for_at_the_deadline() {
    let door = failing(ScriptedAnswer::memory().held());
    run(async {
        let began = tokio::time::Instant::now();
        let response = door.decide(&request("d", &["refuse=x"])).await.unwrap();
        assert_eq!(shown(&response), ["OVER", "OVER 0 1s"]);
        assert_eq!(began.elapsed(), Duration::from_millis(15));
    });
}

#[test]
fn call_without_counters_asks_no_store() {
    let store = ScriptedStore::new();
    let door = EnvoyDoor::new(parsed(TEXT), store.clone(), EnvoyOptions::default());
    run(door.decide(&request("d", &["open=x", "nope=x", ""]))).unwrap();
    assert_eq!(store.operations(), []);
}

#[test]
fn call_is_one_step() {
    let store = ScriptedStore::new();
    let door = EnvoyDoor::new(parsed(TEXT), store.clone(), EnvoyOptions::default());
    run(door.decide(&request(
        "d",
        &[
            "default=x",
            "allow=x hits:3",
            "refuse=x hits:0",
            "default=x",
        ],
    )))
    .unwrap();
    let operations = store.operations();
    assert_eq!(operations.len(), 1);
    assert_eq!(operations[0].operation, Operation::Check);
    let units: Vec<u64> = operations[0]
        .charges
        .iter()
        .map(|charge| charge.units)
        .collect();
    assert_eq!(units, [2, 3, 0]);
}
