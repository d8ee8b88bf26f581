//! Tests that the alert rules are valid, have tests for promtool, and name only existing metrics.

use std::fs;
use std::process::Command;

use tower_quota::metrics::METRICS;

use crate::prometheus::program;
use crate::recorder::file;

fn promtool(arguments: &[&str]) {
    let output = Command::new(program("promtool"))
        .current_dir(file("ops/prometheus"))
        .args(arguments)
        .output();
    let output =
        output.unwrap_or_else(|error| panic!("promtool: {error}; scripts/install prometheus"));
    assert!(
        output.status.success(),
        "promtool {arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn alerts_fire_as_their_tests_say() {
    promtool(&["check", "rules", "alerts.yml"]);
    promtool(&["test", "rules", "alerts_test.yml"]);
}

#[test]
fn every_alert_fires_in_a_test() {
    let rules = fs::read_to_string(file("ops/prometheus/alerts.yml")).unwrap();
    let tests = fs::read_to_string(file("ops/prometheus/alerts_test.yml")).unwrap();
    let alerts: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert_eq!(alerts.len(), 20);
    for alert in alerts {
        let fires = |part: &str| {
            part.lines()
                .nth(1)
                .is_some_and(|line| line.trim() == "exp_alerts:")
        };
        let name = format!("alertname: {alert}");
        assert!(
            tests.split(&name).skip(1).any(fires),
            "{alert} does not fire in any test"
        );
    }
}

#[test]
fn files_name_only_known_metrics() {
    for path in [
        "ops/prometheus/alerts.yml",
        "ops/prometheus/alerts_test.yml",
        "ops/grafana/tower-quota.json",
    ] {
        let text = fs::read_to_string(file(path)).unwrap();
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        let mut found = 0;
        for name in text
            .split(|letter| !is_name(letter))
            .filter(|word| word.starts_with("tower_quota_"))
        {
            let name = name.trim_end_matches("_bucket");
            assert!(
                METRICS.iter().any(|metric| metric.name == name),
                "{path} names {name}"
            );
            found += 1;
        }
        assert!(found > 5, "{path}");
    }
}
