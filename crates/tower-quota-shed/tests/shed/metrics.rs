//! The published metrics, and the files that read them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit,
};
use tower_quota_shed::metrics::publish_stats;

use crate::service::{around, ask, fixed, get, start};

/// Keeps the values by name and labels.
#[derive(Clone, Default)]
struct Values(Arc<Mutex<BTreeSet<String>>>);

struct Value(Values, String);

impl Value {
    fn set(&self, value: String) {
        self.0
            .0
            .lock()
            .unwrap()
            .insert(format!("{} {value}", self.1));
    }
}

impl GaugeFn for Value {
    fn increment(&self, _: f64) {}

    fn decrement(&self, _: f64) {}

    fn set(&self, value: f64) {
        self.set(value.to_string());
    }
}

impl CounterFn for Value {
    fn increment(&self, _: u64) {}

    fn absolute(&self, value: u64) {
        self.set(value.to_string());
    }
}

impl Values {
    fn value(&self, key: &Key) -> Arc<Value> {
        let labels = key
            .labels()
            .map(|label| format!(" {}={}", label.key(), label.value()));
        Arc::new(Value(
            self.clone(),
            key.name().to_owned() + &labels.collect::<String>(),
        ))
    }
}

impl Recorder for Values {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.value(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.value(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn figures_become_metrics() {
    let layer = fixed(1);
    let mut service = around(&layer);
    let (_running, _finish) = start(&mut service, get("/")).await;
    assert_eq!(ask(&mut service, get("/")).await, 503);
    let values = Values::default();
    metrics::with_local_recorder(&values, || publish_stats("api", &layer.handle().stats()));
    let values = values.0.lock().unwrap();
    for expected in [
        "tower_quota_shed_active layer=api 1",
        "tower_quota_shed_in_progress_requests layer=api 1",
        "tower_quota_shed_limit_requests layer=api 1",
        "tower_quota_shed_long_bodies layer=api 0",
        "tower_quota_shed_refused_total layer=api priority=normal cause=limit 1",
        "tower_quota_shed_waiting_requests layer=api 0",
    ] {
        assert!(values.contains(expected), "{expected} not in {values:?}");
    }
}

#[test]
fn alerts_and_dashboard_name_only_these_metrics() {
    let metrics = include_str!("../../src/metrics.rs");
    for file in [
        include_str!("../../../../ops/prometheus/shed_alerts.yml"),
        include_str!("../../../../ops/prometheus/shed_alerts_test.yml"),
        include_str!("../../../../ops/grafana/shedding.json"),
    ] {
        for (at, _) in file.match_indices("tower_quota_shed_") {
            let mut name =
                file[at..].split(|letter: char| letter != '_' && !letter.is_ascii_lowercase());
            let name = format!("`{}`", name.next().unwrap());
            assert!(metrics.contains(&name), "{name}");
        }
    }
}
