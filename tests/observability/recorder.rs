//! Gives every test a separate recorder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use tower_quota::metrics::METRICS;

/// Returns a recorder with the buckets of the table.
pub(crate) fn recorder() -> PrometheusRecorder {
    let builder = METRICS
        .iter()
        .filter(|metric| !metric.buckets.is_empty())
        .fold(PrometheusBuilder::new(), |builder, metric| {
            builder
                .set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), metric.buckets)
                .unwrap()
        });
    builder.build_recorder()
}

/// Runs a test with a separate recorder. The test must stay on a single thread.
pub(crate) fn recording(test: impl Future<Output = ()>) -> PrometheusHandle {
    let recorder = recorder();
    let handle = recorder.handle();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(test));
    handle
}

/// Returns the values of all series in a scrape.
pub(crate) fn samples(scrape: &PrometheusHandle) -> BTreeMap<String, f64> {
    let text = scrape.render();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// Returns a file of the repository.
pub(crate) fn file(path: &str) -> PathBuf {
    static ROOT: LazyLock<PathBuf> =
        LazyLock::new(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    ROOT.join(path)
}
