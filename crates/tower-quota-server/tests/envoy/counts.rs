//! Counts of limits, with the names of envoyproxy/ratelimit.

use metrics_exporter_prometheus::PrometheusBuilder;
use tower_quota_server::envoy::{EnvoyDoor, EnvoyOptions};
use tower_quota_testkit::{ScriptedAnswer, ScriptedStore};

use crate::support::{World, parsed, request, run};

const TEXT: &str = "
domain: d
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 20 }
  - key: user
    value: ann
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: path
    value: img/*
    rate_limit: { unit: minute, requests_per_unit: 1 }
    descriptors:
      - key: verb
        rate_limit: { unit: minute, requests_per_unit: 10 }
        descriptors:
          - key: deep
            rate_limit: { unit: minute, requests_per_unit: 10 }
  - key: detailed
    detailed_metric: true
    rate_limit: { unit: minute, requests_per_unit: 10 }
  - key: shared
    value: s*
    share_threshold: true
    detailed_metric: true
    rate_limit: { unit: minute, requests_per_unit: 10 }
  - key: tenant
    value_to_metric: true
    descriptors:
      - key: kind
        value: k*
        share_threshold: true
        value_to_metric: true
        descriptors:
          - key: verb
            rate_limit: { unit: minute, requests_per_unit: 10 }
      - key: plan
        value: p*
        value_to_metric: true
        rate_limit: { unit: minute, requests_per_unit: 10 }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: open
    rate_limit: { unlimited: true }
  - key: none
    rate_limit: { unit: minute, requests_per_unit: 0 }
  - key: tokens
    rate_limit: { unit: minute, requests_per_unit: 10, post_charge: true }
";

/// Returns the counts of calls, without the start of their names.
fn counts(options: EnvoyOptions, text: &str, calls: &[&[&str]]) -> Vec<String> {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        let world = World::with_options("d", parsed(text), options);
        for call in calls {
            world.ask(call);
        }
    });
    let page = recorder.handle().render();
    let lines = page
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut shown: Vec<String> = lines
        .filter(|line| !line.ends_with(" 0"))
        .map(|line| {
            line.replace("ratelimit_service_rate_limit_", "")
                .replace("domain=\"d\",", "")
        })
        .collect();
    shown.sort();
    shown
}

#[test]
fn hits_count_as_near_within_and_over() {
    let calls = [
        &["user=bob hits:15"][..],
        &["user=bob hits:3"],
        &["user=bob hits:4"],
        &["user=bob hits:2"],
        &["user=bob"],
    ];
    assert_eq!(
        counts(EnvoyOptions::default(), TEXT, &calls),
        [
            // The refused 4 hits had 2 places left, and the last hit had none.
            "near_limit{key1=\"user\"} 6",
            "over_limit{key1=\"user\"} 3",
            "total_hits{key1=\"user\"} 25",
            "within_limit{key1=\"user\"} 20",
        ]
    );
}

#[test]
fn compatible_domain_counts_as_the_reference() {
    let text = format!("{TEXT}compatible: true\n");
    let calls = [
        &["user=bob hits:15"][..],
        &["user=bob hits:3"],
        &["user=bob hits:4"],
        &["user=bob hits:2"],
    ];
    assert_eq!(
        counts(EnvoyOptions::default(), &text, &calls),
        [
            "near_limit{key1=\"user\"} 4",
            "over_limit{key1=\"user\"} 4",
            "total_hits{key1=\"user\"} 24",
            "within_limit{key1=\"user\"} 18",
        ]
    );
}

#[test]
fn names_have_the_values_that_the_limits_choose() {
    let calls = [
        &["user=ann"][..],
        &["path=img/logo"],
        &["path=img/logo verb=get"],
        &["path=img/logo verb=get deep=x"],
        &["detailed=one"],
        &["detailed=one"],
        &["detailed=two"],
        &["shared=s1"],
        &["shared=s2"],
        &["tenant=t1 kind=k1 verb=get"],
        &["tenant=t1 plan=p1"],
        &["any=x other=y limit:5/DAY"],
        &["any=z other=y limit:5/DAY"],
    ];
    let shown = counts(EnvoyOptions::default(), TEXT, &calls);
    let total: Vec<&str> = shown
        .iter()
        .filter_map(|line| line.strip_prefix("total_hits"))
        .collect();
    assert_eq!(
        total,
        [
            "{key1=\"any\",key2=\"other\"} 2",
            "{key1=\"detailed_one\"} 2",
            "{key1=\"detailed_two\"} 1",
            "{key1=\"path_img/*\",key2=\"verb\"} 1",
            "{key1=\"path_img/*\",key2=\"verb.deep\"} 1",
            "{key1=\"path_img/*\"} 1",
            "{key1=\"shared_s*\"} 2",
            "{key1=\"tenant_t1\",key2=\"kind_k*.verb\"} 1",
            "{key1=\"tenant_t1\",key2=\"plan_p1\"} 1",
            "{key1=\"user_ann\"} 1",
        ]
    );
}

#[test]
fn names_with_values_are_bounded() {
    let calls: Vec<String> = (0..1_003)
        .map(|number| format!("detailed={number}"))
        .collect();
    let calls: Vec<[&str; 1]> = calls.iter().map(|call| [call.as_str()]).collect();
    let calls: Vec<&[&str]> = calls.iter().map(<[&str; 1]>::as_slice).collect();
    let shown = counts(EnvoyOptions::default(), TEXT, &calls);
    let named = shown
        .iter()
        .filter(|line| line.starts_with("total_hits{key1=\"detailed_"));
    assert_eq!(named.count(), 1_000);
    assert!(shown.contains(&"total_hits{key1=\"detailed\"} 3".to_owned()));
}

#[test]
fn names_of_changing_limits_are_bounded() {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        let world = World::new("d", parsed(TEXT));
        for document in 0..17 {
            let keys: Vec<String> = (0..1_000).map(|key| format!("{document}-{key}")).collect();
            let limits = keys.iter().map(|key| {
                format!("  - {{ key: {key}, rate_limit: {{ unit: day, requests_per_unit: 9 }} }}\n")
            });
            let limits = limits.collect::<String>();
            world
                .door
                .replace(parsed(&format!("domain: d\ndescriptors:\n{limits}")));
            for key in &keys {
                world.ask(&[&format!("{key}=x")]);
            }
        }
        // The limits that are known stay known.
        world.door.replace(parsed("domain: d\ndescriptors: [{ key: 0-0, rate_limit: { unit: day, requests_per_unit: 9 } }]"));
        world.ask(&["0-0=x"]);
    });
    let page = recorder.handle().render();
    let total = "\nratelimit_service_rate_limit_total_hits{domain=";
    assert_eq!(page.matches(total).count(), 16_385);
    assert!(
        page.contains(&format!("{total}\"other\"}} 616\n")),
        "{page:.1000}"
    );
    assert!(page.contains(&format!("{total}\"d\",key1=\"0-0\"}} 2\n")));
}

#[test]
fn long_values_are_left_out_of_names() {
    let (long, short) = ("v".repeat(1_000), "v".repeat(100));
    let long = [format!("detailed={long}"), format!("{long}=x limit:5/DAY")];
    let short = format!("detailed={short}");
    let calls = [&[&*long[0]][..], &[&long[1]], &[&short]];
    let shown = counts(EnvoyOptions::default(), TEXT, &calls);
    assert!(shown.contains(&"total_hits{key1=\"detailed\"} 1".to_owned()));
    let longest = shown.iter().map(String::len).max().unwrap();
    assert!((100..200).contains(&longest), "{longest}");
}

#[test]
fn shadows_and_other_calls_are_counted() {
    let calls = [
        &["shadow=x hits:2"][..],
        &["shadow=x hits:3", "open=x", "nope=x"],
        &["none=x hits:2"],
        &["tokens=x hits:14"],
        &["tokens=x hits:0"],
        &["tokens=x back:3"],
    ];
    assert_eq!(
        counts(EnvoyOptions::default(), TEXT, &calls),
        [
            "near_limit{key1=\"shadow\"} 1",
            "near_limit{key1=\"tokens\"} 2",
            "over_limit{key1=\"none\"} 2",
            "over_limit{key1=\"shadow\"} 3",
            "over_limit{key1=\"tokens\"} 4",
            "shadow_mode{key1=\"shadow\"} 3",
            "total_hits{key1=\"none\"} 2",
            "total_hits{key1=\"shadow\"} 5",
            "total_hits{key1=\"tokens\"} 14",
            "within_limit{key1=\"shadow\"} 2",
        ]
    );
}

#[test]
fn unknown_domains_and_shadow_calls_are_counted() {
    let mut options = EnvoyOptions::default();
    options.is_shadow = true;
    options.near_limit_percent = 50;
    let text = TEXT.replace("domain: d", "domain: other");
    assert_eq!(
        counts(options.clone(), &text, &[&["user=x"], &["user=x"]]),
        ["domain_not_found 2"]
    );
    let shown = counts(
        options,
        TEXT,
        &[&["user=bob hits:12"], &["user=bob hits:9"]],
    );
    assert_eq!(
        shown,
        [
            "near_limit{key1=\"user\"} 10",
            "over_limit{key1=\"user\"} 1",
            "ratelimit_service_global_shadow_mode 1",
            "total_hits{key1=\"user\"} 21",
            "within_limit{key1=\"user\"} 12",
        ]
    );
}

#[test]
fn hits_during_an_outage_are_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        let store = ScriptedStore::new();
        store.set_default(ScriptedAnswer::error("connection refused"));
        let door = EnvoyDoor::new(parsed(TEXT), store, EnvoyOptions::default());
        run(door.decide(&request("d", &["user=bob hits:7"]))).unwrap();
    });
    let page = recorder.handle().render();
    assert!(
        page.contains("total_hits{domain=\"d\",key1=\"user\"} 7"),
        "{page}"
    );
}
