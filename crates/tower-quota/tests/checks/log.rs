//! A subscriber that records the log lines and the spans of this crate.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The log lines of a test's thread, on which its server runs too.
#[derive(Clone, Default)]
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<(Level, String)>>>,
    spans: Arc<Mutex<Vec<BTreeMap<String, String>>>>,
}

impl Log {
    pub(crate) fn lines(&self) -> Vec<(Level, String)> {
        self.lines.lock().unwrap().clone()
    }

    /// Returns the fields of each span, and its name as `name`.
    pub(crate) fn spans(&self) -> Vec<BTreeMap<String, String>> {
        self.spans.lock().unwrap().clone()
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_quota")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(BTreeMap::from([(
            "name".to_owned(),
            span.metadata().name().to_owned(),
        )]));
        span.record(&mut fields);
        let mut spans = self.spans.lock().unwrap();
        spans.push(fields.0);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut fields = Fields(BTreeMap::new());
        values.record(&mut fields);
        let position = usize::try_from(span.into_u64() - 1).unwrap();
        self.spans.lock().unwrap()[position].extend(fields.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.lines
            .lock()
            .unwrap()
            .push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").unwrap();
        } else {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }
}
