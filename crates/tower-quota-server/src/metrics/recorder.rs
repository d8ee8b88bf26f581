//! The recorder of the process, which Prometheus reads.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::table;

/// The recorder of all servers of the process.
static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Installs the recorder, unless it is installed already. Layers and doors need it before their first request.
pub(crate) fn install() {
    RECORDER.get_or_init(|| build().ok());
}

/// Returns what Prometheus reads. The page is empty if another part of the process has installed a recorder.
pub(crate) fn render() -> String {
    handle().map(PrometheusHandle::render).unwrap_or_default()
}

/// Moves the samples of histograms into their buckets, so that memory stays bounded without Prometheus.
pub(crate) fn keep_up() {
    if let Some(handle) = handle() {
        handle.run_upkeep();
    }
}

fn handle() -> Option<&'static PrometheusHandle> {
    RECORDER.get()?.as_ref()
}

fn build() -> Result<PrometheusHandle, BuildError> {
    let times = Matcher::Full(table::CALL_TIME.into());
    let mut builder = PrometheusBuilder::new().set_buckets_for_metric(times, table::TIMES)?;
    for metric in tower_quota::metrics::METRICS {
        if !metric.buckets.is_empty() {
            let name = Matcher::Full(metric.name.into());
            builder = builder.set_buckets_for_metric(name, metric.buckets)?;
        }
    }
    let handle = builder.install_recorder()?;
    tower_quota::metrics::describe();
    table::describe();
    Ok(handle)
}
