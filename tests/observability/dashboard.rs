//! The dashboard and the alerts in a real Prometheus that scrapes a real service.

use std::fs;

use serde_json::Value;
use tokio::task::JoinSet;
use tower_quota::metrics;
use tower_quota_testkit::RedisServer;

use crate::prometheus::Prometheus;
use crate::recorder::{file, recorder};
use crate::service::{load, serve};

/// Returns the title and the queries of each panel of the dashboard.
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_panel_shows_data_of_a_real_service() {
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
    assert_eq!(healthy.await.len(), 10);
}
