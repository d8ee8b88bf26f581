use core::convert::Infallible;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::sse::{Event, Sse};
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_stream::wrappers::{ReceiverStream, WatchStream};
use tokio_stream::{Stream, StreamExt};
use tower_quota::{Key, Name};

use super::health::Health;
use super::totals;
use crate::api::{Api, ApiState};
use crate::hide::ReadsKeys;
use crate::problem::{Problem, ProblemKind, Result};
use crate::recent::{Second, now, unix_ms};
use crate::streams::Pace;
use crate::{AdminOptions, Author};

/// The pace of a stream. A stream ends early, because browsers reconnect.
const PACE: Pace = Pace {
    patience: Duration::from_secs(10),
    longest: Duration::from_secs(600),
};

/// The number of peeks in a second, while a store of the counters fails.
const ASKED: u64 = 8;

#[derive(Serialize)]
pub(crate) struct Snapshot {
    at_ms: u64,
    health: Health,
    limits: Vec<Value>,
    more_limits: usize,
    seconds: Vec<Second>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store_latency: Option<Value>,
}

/// Sends a snapshot per second as server-sent events, for ten minutes.
///
/// Events have the name `snapshot` and JSON data.
pub(crate) async fn events(
    State(api): State<Api>,
    reads_keys: ReadsKeys,
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
    start(&api);
    let (sender, sent) = mpsc::channel(1);
    let later = WatchStream::from_changes(api.feed.snapshots(reads_keys.0).subscribe());
    let snapshots = tokio_stream::once(Snapshot::json(&api, reads_keys, true)).chain(later);
    tokio::spawn(place.send(PACE, sender, snapshots));
    let event = |json: Arc<str>| Ok(Event::default().event("snapshot").data(json));
    Ok(Sse::new(ReceiverStream::new(sent).map(event)))
}

/// Starts the observation once there is a runtime. The observation ends with the router.
pub(crate) fn start(api: &Api) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    if api.feed.started.swap(true, Ordering::Relaxed) {
        return;
    }
    let shared = Arc::downgrade(&api.0);
    runtime.spawn(async move {
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            observe(&Api(shared));
        }
    });
}

fn observe(api: &Api) {
    let ApiState { live, feed, .. } = &**api;
    ask_failed_stores(api);
    api.shedding.iter().for_each(|layer| layer.observe());
    {
        let mut recent = feed.recent();
        recent.add(now(), unix_ms(), &live.handle().decision_totals());
        recent.add_calls(live.handle().store_latency());
    }
    for reads_keys in [ReadsKeys(true), ReadsKeys(false)] {
        let snapshots = feed.snapshots(reads_keys.0);
        if snapshots.receiver_count() > 0 {
            snapshots.send_replace(Snapshot::json(api, reads_keys, false));
        }
    }
}

/// Asks the stores of the counters that failed their last call, because a service without requests asks them nothing.
fn ask_failed_stores(api: &Api) {
    if !has_failed_store(api) {
        return;
    }
    let (api, now) = (api.clone(), unix_ms());
    let asking = async move {
        let handle = api.live.handle();
        let Some(limit) = handle.limits().first().copied() else {
            return;
        };
        // Keys of no client, which reach all partitions of a cluster within a few seconds.
        for number in 0..ASKED {
            let bytes = (now + number).to_be_bytes();
            let key = Key::new(const { Name::new("health") }, &bytes);
            handle.peek(limit.as_str(), &key).await.ok();
            if !has_failed_store(&api) {
                return;
            }
        }
    };
    tokio::spawn(timeout(Duration::from_secs(1), asking));
}

fn has_failed_store(api: &Api) -> bool {
    api.figures.iter().any(|(_, read)| read().unavailable)
}

impl Snapshot {
    fn json(api: &Api, reads_keys: ReadsKeys, all: bool) -> Arc<str> {
        let health = Health::of(api, reads_keys);
        let recent = api.feed.recent();
        let (limits, more_limits) = totals::listed(api, &recent.last_minute());
        let names: Vec<_> = limits.iter().map(|totals| totals.limit.as_str()).collect();
        let snapshot = Self {
            at_ms: unix_ms(),
            health,
            limits: limits.iter().map(totals::of_limit).collect(),
            more_limits,
            seconds: recent.seconds(all, &names),
            store_latency: totals::of_calls(&recent.calls(&api.live.handle().store_latency())),
        };
        drop(recent);
        // Names and numbers always serialize.
        serde_json::to_string(&snapshot).unwrap_or_default().into()
    }
}
