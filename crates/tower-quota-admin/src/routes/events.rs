//! Server-sent events: a snapshot a second.

use core::convert::Infallible;
use core::time::Duration;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use axum::extract::{Extension, State};
use axum::response::sse::{Event, Sse};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use utoipa::ToSchema;

use super::health::Health;
use super::totals::{self, Latency, LimitTotals};
use crate::api::Api;
use crate::last_snapshot::LastSnapshot;
use crate::problem::{Problem, ProblemKind, Result};
use crate::streams::Pace;
use crate::{AdminOptions, Author};

/// The times of a stream. A browser reconnects by itself after the end.
const PACE: Pace = Pace {
    every: Duration::from_secs(1),
    patience: Duration::from_secs(10),
    longest: Duration::from_secs(600),
};

/// The time for which streams share a snapshot.
const FRESH: Duration = Duration::from_millis(900);

/// The state of an instance at one moment.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Snapshot {
    health: Health,
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
    author: Option<Extension<Author>>,
) -> Result<Sse<impl Stream<Item = core::result::Result<Event, Infallible>>>> {
    let author = author.map(|author| author.0.0).unwrap_or_default();
    let place = api.streams.enter(&author).ok_or_else(|| {
        let detail = format_args!(
            "all event streams are in use: there are {} for a token, and {} for this instance",
            AdminOptions::MOST_STREAMS_EACH,
            AdminOptions::MOST_STREAMS
        );
        Problem::new(ProblemKind::TooManyStreams, detail)
    })?;
    let (sender, snapshots) = mpsc::channel(1);
    tokio::spawn(place.send(PACE, sender, move || snapshot(&api)));
    let event = |json: Arc<str>| Ok(Event::default().event("snapshot").data(json));
    Ok(Sse::new(ReceiverStream::new(snapshots).map(event)))
}

/// Returns the last snapshot, or a new one if the last is old.
fn snapshot(api: &Api) -> Arc<str> {
    let mut last = api.last.lock().unwrap_or_else(PoisonError::into_inner);
    if last.made.is_none_or(|made| made.elapsed() >= FRESH) {
        let latency = api.live.handle().store_latency();
        let (limits, more_limits) = totals::busiest(api);
        let snapshot = Snapshot {
            health: Health::of(api),
            limits,
            more_limits,
            store_latency: Latency::of(&latency.since(&last.latency)),
        };
        // Names and numbers always are JSON.
        let json = serde_json::to_string(&snapshot).unwrap_or_default();
        *last = LastSnapshot {
            made: Some(now()),
            json: json.into(),
            latency,
        };
    }
    Arc::clone(&last.json)
}

#[expect(clippy::disallowed_methods, reason = "no counter depends on it")]
fn now() -> Instant {
    Instant::now()
}
