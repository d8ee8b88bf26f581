//! Server-sent events: a snapshot a second.

use core::convert::Infallible;
use core::time::Duration;
use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::sse::{Event, Sse};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, WatchStream};
use tokio_stream::{Stream, StreamExt};
use utoipa::ToSchema;

use super::health::Health;
use super::totals::{self, Latency, LimitTotals};
use crate::api::Api;
use crate::problem::{Problem, ProblemKind, Result};
use crate::recent::{Feed, Second, unix_ms};
use crate::streams::Pace;
use crate::{AdminOptions, Author};

/// The times of a stream. A browser reconnects by itself after the end.
const PACE: Pace = Pace {
    patience: Duration::from_secs(10),
    longest: Duration::from_secs(600),
};

/// The state of an instance at one moment.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Snapshot {
    /// The instant, in milliseconds since 1970.
    at_ms: u64,
    health: Health,
    /// The decisions of 50 limits, since the rules in force were set on this instance. The limits with most refusals in
    /// the last minute are first.
    limits: Vec<LimitTotals>,
    /// The number of limits that are not listed.
    more_limits: usize,
    /// The newest second of the listed limits. The first event of a stream has the last five minutes.
    seconds: Vec<Second>,
    /// The durations of the store's calls in the last ten seconds; absent if there were none.
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
    Feed::start(&api);
    let (sender, sent) = mpsc::channel(1);
    let later = WatchStream::from_changes(api.feed.snapshots.subscribe());
    let snapshots = tokio_stream::once(Snapshot::json(&api, true)).chain(later);
    tokio::spawn(place.send(PACE, sender, snapshots));
    let event = |json: Arc<str>| Ok(Event::default().event("snapshot").data(json));
    Ok(Sse::new(ReceiverStream::new(sent).map(event)))
}

impl Snapshot {
    /// Returns the snapshot of this moment, with the newest second or all of them.
    pub(crate) fn json(api: &Api, all: bool) -> Arc<str> {
        let health = Health::of(api);
        let recent = api.feed.recent();
        let (limits, more_limits) = totals::listed(api, &recent.last_minute());
        let names: Vec<_> = limits.iter().map(LimitTotals::name).collect();
        let snapshot = Self {
            at_ms: unix_ms(),
            health,
            limits,
            more_limits,
            seconds: recent.seconds(all, &names),
            store_latency: Latency::of(&recent.calls(&api.live.handle().store_latency())),
        };
        drop(recent);
        // Names and numbers always are JSON.
        serde_json::to_string(&snapshot).unwrap_or_default().into()
    }
}
