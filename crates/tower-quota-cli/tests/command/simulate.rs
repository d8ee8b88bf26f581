//! Tests of simulations with access logs.

use crate::command::{Files, Ran, command, run};
use crate::service::{TOKEN, TestService};

const RULES: &str =
    "limits: [{ name: minute, quota: 5/minute, key: client_ip }]\nskip: [{ path: /healthz }]\n";

/// Returns a log with ten requests from a client in a minute, and two requests from a second client.
fn log() -> String {
    let line = |address: &str, second: u32, path: &str| {
        format!(
            "{address} - - [21/Nov/2025:10:00:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"-\"\n"
        )
    };
    let mut log = String::new();
    for second in 0..10 {
        log += &line("10.0.0.1", second, "/");
    }
    log + &line("10.0.0.2", 20, "/")
        + &line("10.0.0.2", 30, "/")
        + &line("10.0.0.2", 31, "/healthz")
        + "nonsense\n"
}

#[test]
fn simulation_counts_limited_requests_and_clients() {
    let files = Files::new();
    let (rules, log) = (
        files.write("rules.yaml", RULES),
        files.write("access.log", log()),
    );
    let report = run(&[
        "simulate",
        "--rules",
        &rules,
        "--log",
        &log,
        "--show-keys",
        "--json",
    ])
    .json(0);
    assert_eq!(
        (
            &report["log"]["requests"],
            &report["log"]["unreadable_lines"]
        ),
        (&13.into(), &1.into())
    );
    // A client may send five requests at once, and a unit refills after twelve seconds.
    let new = &report["new"];
    assert_eq!(
        (&new["admitted"], &new["limited"], &new["uncounted"]),
        (&7.into(), &5.into(), &1.into())
    );
    let limit = &new["limits"][0];
    assert_eq!(
        (
            &limit["clients"],
            &limit["clients_hit"],
            &limit["longest_retry_ms"]
        ),
        (&2.into(), &1.into(), &7_000.into())
    );
    let client = &new["clients"][0];
    assert_eq!(
        (&client["client"], &client["limited"]),
        (&"10.0.0.1".into(), &5.into())
    );
    let text = run(&["simulate", "--rules", &rules, "--log", &log]).expect(0);
    assert!(
        text.contains("\nnew admitted: 7\n") && !text.contains("10.0.0.1"),
        "{text}"
    );
}

#[test]
fn limit_that_flags_is_no_shadow() {
    let files = Files::new();
    let rules = RULES.replace(
        "limits: [",
        "limits: [{ name: soft, quota: 1/minute, key: client_ip, over: flag }, \
         { name: dry, quota: 1/minute, key: client_ip, shadow: true }, ",
    );
    let (rules, log) = (
        files.write("rules.yaml", rules),
        files.write("access.log", log()),
    );
    let simulate = ["simulate", "--rules", &rules, "--log", &log, "--json"];
    let limits = run(&simulate).json(0)["new"]["limits"].take();
    let kinds = |position: usize| (&limits[position]["shadow"], limits[position].get("over"));
    assert_eq!(kinds(0), (&false.into(), Some(&"flag".into())), "{limits}");
    assert_eq!(kinds(1), (&true.into(), None), "{limits}");
    assert_eq!(kinds(2), (&false.into(), None), "{limits}");
}

#[test]
fn two_documents_are_compared() {
    let files = Files::new();
    let (old, log) = (
        files.write("old.yaml", RULES),
        files.write("access.log", log()),
    );
    let new = files.write("new.yaml", RULES.replace("5/minute", "1/minute"));
    let report = run(&[
        "simulate", "--rules", &new, "--old", &old, "--log", &log, "--json",
    ])
    .json(0);
    let change = &report["change"];
    assert_eq!(
        (&change["newly_refused"], &change["newly_admitted"]),
        (&5.into(), &0.into())
    );
    assert_eq!(
        change["limits"],
        serde_json::json!([{ "limit": "minute", "newly_hit": 1, "no_longer_hit": 0 }])
    );
}

#[test]
fn queued_requests_wait_in_virtual_time() {
    let files = Files::new();
    let rules =
        "limits: [{ name: queue, quota: 1/second leaky_bucket queue 3, key: none, max_wait: 10s }]";
    let rules = files.write("rules.yaml", rules);
    let line = |second: u32| {
        format!("10.0.0.1 - - [21/Nov/2025:10:00:{second:02} +0000] \"GET / HTTP/1.1\" 200 5\n")
    };
    let log = files.write("access.log", line(0).repeat(6) + &line(30).repeat(2));
    let report = run(&["simulate", "--rules", &rules, "--log", &log, "--json"]).json(0);
    let new = &report["new"];
    let counts =
        [&new["admitted"], &new["queued"], &new["limited"]].map(|count| count.as_u64().unwrap());
    assert_eq!((counts.iter().sum::<u64>(), counts[0]), (8, 2), "{new}");
    assert!(counts[1] >= 3 && counts[2] >= 1, "{new}");
    assert!(
        new["limits"][0]["longest_wait_ms"].as_u64().unwrap() >= 2_000,
        "{new}"
    );
}

#[test]
fn limit_that_settles_reads_the_logged_status() {
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "limits: [{ name: login, quota: 2/hour, key: client_ip, settle: only_failures }]",
    );
    let line = |status: u16| {
        format!("10.0.0.1 - - [21/Nov/2025:10:00:00 +0000] \"POST / HTTP/1.1\" {status} 5\n")
    };
    let limited = |log: String| {
        let log = files.write("access.log", log);
        run(&["simulate", "--rules", &rules, "--log", &log, "--json"]).json(0)["new"]["limited"]
            .clone()
    };
    assert_eq!(
        (limited(line(200).repeat(9)), limited(line(401).repeat(9))),
        (0.into(), 7.into())
    );
}

#[test]
fn log_without_requests_is_a_problem() {
    let files = Files::new();
    let (rules, log) = (
        files.write("rules.yaml", RULES),
        files.write("access.log", "a\nb\n"),
    );
    let ran = run(&["simulate", "--rules", &rules, "--log", &log]);
    assert!(
        ran.code == 1 && ran.error.contains("2 lines"),
        "{}",
        ran.error
    );
    assert_eq!(
        run(&["simulate", "--rules", &rules, "--log", "/nowhere.log"]).code,
        2
    );
}

/// Returns twenty lines of one address, with an API key in the third quoted field of the first lines.
fn keyed_log(lines_with_key: u32) -> String {
    let line = |number: u32| {
        let key = if number < lines_with_key { "ann" } else { "-" };
        format!(
            "10.0.0.1 - - [21/Nov/2025:10:00:{number:02} +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" \"{key}\"\n"
        )
    };
    (0..20).map(line).collect()
}

/// Returns the arguments that simulate rules on a log of `keyed_log`.
fn of_keyed_log<'a>(rules: &'a str, log: &'a str) -> [&'a str; 6] {
    let header = "--header=x-api-key=3";
    ["simulate", "--rules", rules, "--log", log, header]
}

#[test]
fn header_of_no_line_is_named() {
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "limits: [{ name: minute, quota: 5/minute, key: [header x-api-key, client_ip] }]",
    );
    let log = files.write("access.log", keyed_log(20));
    let simulate = |more: &[&str]| {
        let arguments = ["simulate", "--rules", &rules, "--log", &log];
        run(&[&arguments, more].concat()).expect(0)
    };
    for forgotten in [&[][..], &["--header", "x-api-key=4"]] {
        let out = simulate(forgotten);
        let note = "no line has the header x-api-key, by which limits count (minute)";
        assert!(out.contains(note), "{out}");
    }
    let out = simulate(&["--header", "x-api-key=3"]);
    assert!(!out.contains("no line has"), "{out}");
}

#[test]
fn requests_without_a_skipped_key_are_explained() {
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "defaults: { missing: skip }\nlimits: [{ name: minute, quota: 5/minute, key: header x-api-key }]",
    );
    let log = files.write("access.log", keyed_log(8));
    let out = run(&of_keyed_log(&rules, &log)).expect(0);
    let note = "12 requests have no header x-api-key, so limits with `missing: skip` do not count them (minute)";
    assert!(out.contains(note) && out.contains("uncounted: 12"), "{out}");
}

#[test]
fn hashes_are_the_hashes_of_services() {
    let service = TestService::start();
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "limits: [{ name: minute, quota: 1/minute, key: header x-api-key }]",
    );
    let log = files.write("access.log", keyed_log(20));
    let arguments = [&of_keyed_log(&rules, &log)[..], &["--json"]].concat();
    let client = |seed: &str| {
        let mut command = command(&arguments);
        let ran = Ran::of(command.env("TOWER_QUOTA_KEY_SEED", seed).output().unwrap());
        ran.json(0)["new"]["clients"][0]["client"].clone()
    };
    let on_service = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env("TOWER_QUOTA_ADMIN", &service.admin);
        Ran::of(command.env("TOWER_QUOTA_TOKEN", TOKEN).output().unwrap())
    };
    on_service(&["put", &rules]).expect(0);
    (0..3).for_each(|_| _ = service.ask("ann"));
    let top = on_service(&["top", "--json"]).json(0);
    // The default of `LiveOptions::key_seed`.
    assert_eq!(
        client("746f7765722d71756f7461206b657973"),
        top[0]["hash"],
        "{top}"
    );
    assert_ne!(client("00000000000000000000000000000000"), top[0]["hash"]);
    assert_ne!(
        run(&arguments).json(0)["new"]["clients"][0]["client"],
        top[0]["hash"]
    );
    let mut short = command(&arguments);
    let short = Ran::of(short.env("TOWER_QUOTA_KEY_SEED", "7").output().unwrap());
    assert!(
        short.code == 2 && short.error.contains("32 hexadecimal digits"),
        "{}",
        short.error
    );
}

#[test]
fn simulation_names_limits_that_no_log_replays() {
    let files = Files::new();
    let rules = files.write(
        "rules.yaml",
        "limits: [{ name: exports, quota: 1 at once }, { name: plan, quota: 5/month in Europe/Berlin }]\n",
    );
    let log = files.write("access.log", log());
    let report = run(&["simulate", "--rules", &rules, "--log", &log, "--json"]).json(0);
    let limited = |position: usize| report["new"]["limits"][position]["limited"].as_u64();
    assert_eq!((limited(0), limited(1)), (Some(0), Some(5)), "{report}");
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("exports count requests in progress"),
        "{notes}"
    );
}
