//! Tests the dashboard and the alerts with a real Prometheus and a real service.

use std::fs;

use serde_json::Value;
use tokio::task::JoinSet;
use tower_quota::metrics;
use tower_quota_dev::RedisServer;

use crate::prometheus::{Prometheus, query_path};
use crate::recorder::{file, recorder};
use crate::service::{load, serve};

/// Returns the titles and the queries of all panels.
fn panels() -> Vec<(String, Vec<String>)> {
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(file("ops/grafana/tower-quota.json")).unwrap())
            .unwrap();
    let panels = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|panel| panel["type"] != "row");
    let queries = |panel: &Value| {
        let targets = panel["targets"].as_array().unwrap().iter();
        targets
            .map(|target| target["expr"].as_str().unwrap().to_owned())
            .collect()
    };
    panels
        .map(|panel| (panel["title"].as_str().unwrap().to_owned(), queries(panel)))
        .collect()
}

/// Returns the series of the alerts, and the labels by which an alert groups the series.
fn selected_by_alerts() -> Vec<(String, String)> {
    let rules = fs::read_to_string(file("ops/prometheus/alerts.yml")).unwrap();
    let mut selected = Vec::new();
    for (at, _) in rules.match_indices("tower_quota_") {
        let (before, series) = rules.split_at(at);
        let name = series.find(|letter: char| !(letter == '_' || letter.is_ascii_lowercase()));
        let name = name.unwrap();
        let end = if series[name..].starts_with('{') {
            series.find('}').unwrap() + 1
        } else {
            name
        };
        let (_, expression) = before.rsplit_once("expr:").unwrap();
        let groups = expression.rsplit_once("by (");
        let labels = groups.map_or("", |(_, group)| group.split_once(')').unwrap().0);
        selected.push((series[..end].to_owned(), labels.to_owned()));
    }
    selected
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_panel_shows_data_of_service() {
    let recorder = recorder();
    let scrape = recorder.handle();
    ::metrics::set_global_recorder(recorder).unwrap();
    metrics::describe();
    let server = RedisServer::start();
    let mut tasks = JoinSet::new();
    let service = serve(&mut tasks, &server.url(), scrape).await;
    load(&mut tasks, service);
    let prometheus = Prometheus::start(service);

    let panels = panels();
    assert!(panels.len() > 20);
    for (title, queries) in panels {
        assert!(!queries.is_empty(), "{title}");
        for query in queries {
            let query = query
                .replace("$__rate_interval", "10s")
                .replace("$job", ".*")
                .replace("$instance", ".*");
            let values = prometheus.values(&query).await;
            assert!(
                values
                    .iter()
                    .all(|value| value.is_finite() && *value >= 0.0),
                "{title}: {query}: {values:?}"
            );
        }
    }

    for (series, labels) in selected_by_alerts() {
        let query = format!("count by ({labels}) ({series})");
        let wanted = labels.split(", ").filter(|label| !label.is_empty());
        let path = query_path(&query);
        let has_labels = prometheus.until(&path, &query, |data| {
            let found = data["result"].as_array()?.first()?["metric"].as_object()?;
            let mut wanted = wanted.clone();
            wanted.all(|label| found.contains_key(label)).then_some(())
        });
        has_labels.await;
    }

    let alerts = |data: &Value| -> Option<Vec<String>> {
        let rules = data["groups"]
            .as_array()?
            .iter()
            .flat_map(|group| group["rules"].as_array())
            .flatten();
        rules
            .map(|rule| (rule["health"] == "ok").then(|| rule["name"].as_str().unwrap().to_owned()))
            .collect()
    };
    let healthy = prometheus.until("/api/v1/rules", "the alert rules", |data| {
        alerts(data).filter(|rules| !rules.is_empty())
    });
    assert_eq!(healthy.await.len(), 20);
}
