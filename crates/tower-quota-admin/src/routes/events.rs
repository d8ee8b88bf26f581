//! Server-sent events: a snapshot a second.

use core::convert::Infallible;
use core::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};
use tokio_stream::wrappers::IntervalStream;
use tokio_stream::{Stream, StreamExt};
use tower_quota::TopWindow;
use tower_quota::metrics::StoreLatency;
use utoipa::ToSchema;

use super::health::Health;
use super::top::{TopEntry, entry};
use super::totals::{self, Latency, LimitTotals};
use crate::AdminOptions;
use crate::api::Api;
use crate::problem::{Problem, ProblemKind, Result};

/// The snapshots of a stream. A browser reconnects by itself after the last.
const MOST_SNAPSHOTS: usize = 600;

/// The clients of each list in a snapshot.
const LISTED: usize = 10;

/// The state of an instance at one moment.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Snapshot {
    health: Health,
    /// The clients that were refused most in the last minute, by the hashes of their keys.
    limited: Vec<TopEntry>,
    /// The clients that asked most in the last minute, by the hashes of their keys.
    busy: Vec<TopEntry>,
    /// The decisions of the limits with most of them, since the rules in force were set on this instance.
    limits: Vec<LimitTotals>,
    /// The number of limits that are not listed.
    more_limits: usize,
    /// The durations of the store's calls since the snapshot before; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    store_latency: Option<Latency>,
}

/// Sends a snapshot a second as server-sent events, for ten minutes.
///
/// Each has the name `snapshot`, and JSON as data.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "events",
    responses((status = 200, body = Snapshot, content_type = "text/event-stream"), (status = 429)),
)]
pub(crate) async fn events(
    State(api): State<Api>,
) -> Result<Sse<impl Stream<Item = core::result::Result<Event, Infallible>>>> {
    let place = api.streams.clone().try_acquire_owned().map_err(|_| {
        let detail = format_args!(
            "all {} event streams of this instance are in use",
            AdminOptions::MOST_STREAMS
        );
        Problem::new(ProblemKind::TooManyStreams, detail)
    })?;
    let mut seconds = interval(Duration::from_secs(1));
    // A client that reads slowly gets the present, not what it has missed.
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = api.live.store_latency();
    let snapshots = IntervalStream::new(seconds)
        .take(MOST_SNAPSHOTS)
        .map(move |_| {
            // The place is free when the stream is dropped.
            let _held = &place;
            Ok(snapshot(&api, &mut before))
        });
    Ok(Sse::new(snapshots).keep_alive(KeepAlive::default()))
}

fn snapshot(api: &Api, before: &mut StoreLatency) -> Event {
    let latency = api.live.store_latency();
    let calls = latency.since(before);
    *before = latency;
    let list = |clients: Vec<_>| {
        clients
            .iter()
            .take(LISTED)
            .map(|client| entry(api, client, false))
            .collect()
    };
    let (limits, more_limits) = totals::busiest(api);
    let snapshot = Snapshot {
        health: Health::of(api),
        limited: list(api.live.top_refused(TopWindow::Minute)),
        busy: list(api.live.top_busy(TopWindow::Minute)),
        limits,
        more_limits,
        store_latency: Latency::of(&calls),
    };
    // Names and numbers always are JSON.
    Event::default()
        .event("snapshot")
        .json_data(snapshot)
        .unwrap_or_default()
}
