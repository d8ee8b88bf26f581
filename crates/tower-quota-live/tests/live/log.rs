//! The log: changes in the audit log, and what came into force or did not.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tower_quota_live::{LiveOptions, MemoryRules};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fixture::{Instance, broken, eventually, new};

/// The log lines of a test's thread, each with its target.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(String, String)>>>);

impl Log {
    fn has(&self, target: &str, parts: &[&str]) -> bool {
        let lines = self.0.lock().unwrap();
        lines
            .iter()
            .any(|(of, line)| of == target && parts.iter().all(|part| line.contains(part)))
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_quota")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.0
            .lock()
            .unwrap()
            .push((event.metadata().target().to_owned(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

#[tokio::test]
async fn changes_and_rejections_are_logged() {
    let log = Log::default();
    let _recording = tracing::subscriber::set_default(log.clone());
    let instance = Instance::start(MemoryRules::new(), LiveOptions::new()).await;
    instance
        .live
        .put(None, new(5).comment("more room"))
        .await
        .unwrap();
    let audit = [
        "who=\"ann\"",
        "what=\"put\"",
        "after=\"version 1\"",
        "comment=\"more room\"",
        "of=\"rules\"",
    ];
    assert!(log.has("tower_quota::audit", &audit), "{:?}", log.0);

    instance.live.store().put(None, broken()).await.unwrap();
    eventually("it is rejected", async || {
        instance.live.state().reloads.rejected == 1
    })
    .await;
    assert!(
        log.has(
            "tower_quota_live::follow::refresh",
            &["version 2 is invalid", "last good document stays"]
        ),
        "{:?}",
        log.0
    );
}
