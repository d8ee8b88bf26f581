//! The lines of the log, in a program of their own: a first log line of another test while this one installs its subscriber
//! could be cached as unwanted.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[allow(dead_code, reason = "other tests use more")]
#[path = "shed/service.rs"]
mod service;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::advance;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use service::{around, ask, fixed, get, hello, start};

/// Keeps the messages of events.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl Visit for Messages {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Messages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_quota_shed")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn shedding_begins_and_ends_with_one_line() {
    let messages = Messages::default();
    let _guard = tracing::subscriber::set_default(messages.clone());
    let layer = fixed(1);
    let mut service = around(&layer);
    // Refusals with pauses of up to nine seconds are one time of shedding.
    for pause in [0, 1, 9, 5] {
        advance(Duration::from_secs(pause)).await;
        let (running, finish) = start(&mut service, get("/")).await;
        assert_eq!(ask(&mut service, get("/")).await, 503);
        assert_eq!(ask(&mut service, get("/")).await, 503);
        finish.send(hello()).unwrap();
        running.await.unwrap().unwrap();
        assert!(layer.handle().stats().is_shedding);
        assert_eq!(ask(&mut service, get("/")).await, 200);
    }
    assert_eq!(*messages.0.lock().unwrap(), ["the service sheds requests"]);
    advance(Duration::from_secs(10)).await;
    assert!(!layer.handle().stats().is_shedding);
    for _ in 0..2 {
        assert_eq!(ask(&mut service, get("/")).await, 200);
    }
    let [begin, end] = [
        "the service sheds requests",
        "the service no longer sheds requests",
    ];
    assert_eq!(*messages.0.lock().unwrap(), [begin, end]);
    // Without an answer in between, the next refusal ends the time of shedding and begins another one.
    let (_running, _finish) = start(&mut service, get("/")).await;
    for _ in 0..2 {
        advance(Duration::from_secs(3_600)).await;
        for _ in 0..2 {
            assert_eq!(ask(&mut service, get("/")).await, 503);
        }
    }
    assert_eq!(*messages.0.lock().unwrap(), [begin, end, begin, end, begin]);
}
