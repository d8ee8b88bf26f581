//! Tests that the page `docs/reference/metrics.md` lists the metrics of the code.

use std::fs;

use tower_quota::metrics::{METRICS, Metric, MetricKind};

use crate::recorder::file;

/// Returns the row of a metric.
fn row(metric: &Metric) -> String {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        _ => "histogram",
    };
    let labels: Vec<String> = metric
        .labels
        .iter()
        .map(|label| format!("`{label}`"))
        .collect();
    format!(
        "| `{}` | {kind} | {} | {} | {} |",
        metric.name,
        metric.unit,
        labels.join(", "),
        metric.description
    )
}

#[test]
fn page_shows_the_table_of_metrics() {
    let page = fs::read_to_string(file("docs/reference/metrics.md")).unwrap();
    let shown: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `tower_quota_"))
        .collect();
    let expected: Vec<String> = METRICS.iter().map(row).collect();
    assert_eq!(
        shown,
        expected,
        "the table should be:\n{}",
        expected.join("\n")
    );
}

#[test]
fn names_follow_the_conventions() {
    for metric in METRICS {
        let (name, unit) = (metric.name, metric.unit);
        assert_eq!(
            name.ends_with("_total"),
            metric.kind == MetricKind::Counter,
            "{name}"
        );
        assert_eq!(name.ends_with("_seconds"), unit == "s", "{name}");
        assert_eq!(name.ends_with("_bytes"), unit == "By", "{name}");
        assert_eq!(
            metric.buckets.is_empty(),
            metric.kind != MetricKind::Histogram,
            "{name}"
        );
        assert!(metric.description.ends_with('.'), "{name}");
    }
}
