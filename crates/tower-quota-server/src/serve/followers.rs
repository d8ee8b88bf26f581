//! Followers, which run while a server serves.

use core::time::Duration;
use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower_quota_core::{BoxStore, Charge, Key, Name, Operation, Quota, Store};

use super::health::Health;
use crate::envoy::{EnvoyConfig, EnvoyDoor, EnvoySource, Problems};
use crate::messages::ratelimit::rate_limit_service_server::SERVICE_NAME;
use crate::metrics;
use crate::store::ServerStore;
use crate::tls::Certificates;

/// The time between two looks at files and at the store.
const LOOK: Duration = Duration::from_secs(1);
/// A key that no client has.
const PROBE: Name = Name::new("server probe");

type Door = EnvoyDoor<BoxStore>;

/// Returns a clock that does not hurry after a pause.
fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Follows the limits of Envoy. Limits with problems leave the earlier ones as they are.
pub(super) async fn limits(mut source: EnvoySource, door: Door, health: Health) {
    loop {
        put(source.next().await, &door, &health);
    }
}

/// Puts limits in force, and reports them.
pub(super) fn put(limits: Result<EnvoyConfig, Problems>, door: &Door, health: &Health) {
    match limits {
        Ok(config) => {
            let limits = config.limits();
            door.replace(config);
            health.set_limits(Ok(limits));
        }
        Err(problems) => health.set_limits(Err(&problems)),
    }
}

/// Replaces the certificates of a port whenever their files change.
pub(super) async fn certificates(port: &'static str, certificates: Arc<Certificates>) {
    let mut ticks = ticks(LOOK);
    loop {
        ticks.tick().await;
        let files = Arc::clone(&certificates);
        let Ok(Some(changed)) = spawn_blocking(move || files.poll()).await else {
            continue;
        };
        metrics::certificates(port, changed.is_ok());
        match changed {
            Ok(()) => tracing::info!("new certificates of the {port} port"),
            Err(error) => tracing::error!(
                "the new certificates of the {port} port cannot be used, the earlier ones stay: {error}"
            ),
        }
    }
}

/// Asks Redis again and again, without a change, so that the health knows of an outage without requests.
pub(super) async fn probe(store: ServerStore, health: Health) {
    if store.redis().is_none() {
        return;
    }
    let quota = Quota::per_second(1);
    let (mut ticks, mut failures) = (ticks(LOOK), 0);
    loop {
        ticks.tick().await;
        let key = Key::new(PROBE, b"");
        let charge = Charge::new(PROBE, &quota, &key);
        let answer = store.store().apply(Operation::Peek, &[charge]).await;
        failures = if answer.is_err() { failures + 1 } else { 0 };
        // A single slow answer, such as the first with its connection, is no outage.
        let error = answer.err().filter(|_| failures > 1);
        health.set_store(error.map(|error| error.to_string()));
    }
}

/// Reports the health to the service of gRPC. Returns whether the server is ready.
pub(super) async fn report(health: &Health, reporter: &HealthReporter) -> bool {
    let ready = health.is_ready();
    let status = match ready {
        true => ServingStatus::Serving,
        false => ServingStatus::NotServing,
    };
    for service in ["", SERVICE_NAME] {
        reporter.set_service_status(service, status).await;
    }
    ready
}

/// Reports each change of the health, and keeps the memory of histograms bounded.
pub(super) async fn reports(health: Health, reporter: HealthReporter, mut reported: bool) {
    let mut ticks = ticks(LOOK);
    loop {
        ticks.tick().await;
        metrics::keep_up();
        // Every report is a message to clients that watch.
        if health.is_ready() != reported {
            reported = report(&health, &reporter).await;
        }
    }
}
