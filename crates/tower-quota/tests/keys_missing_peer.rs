//! A request without the peer's address is logged once per process, hence a file of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use http::Request;
use tower_quota::RequestHead;
use tower_quota::key::{self, KeyExtractor, Proxies, Source};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{value:?}").unwrap();
    }
}

#[test]
fn missing_peer_address_is_logged_once() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let with_peer = {
            let mut request = Request::new(());
            request.extensions_mut().insert("192.0.2.1:80".parse::<std::net::SocketAddr>().unwrap());
            request
        };
        let behind = key::client_ip().behind(Proxies::networks(["10.0.0.0/8"]), Source::XForwardedFor);
        assert!(key::client_ip().extract(&RequestHead::of(&with_peer)).is_some());
        assert_eq!(log.0.lock().unwrap().len(), 0, "the address is there");

        let forged = Request::get("/").header("x-forwarded-for", "192.0.2.1").body(()).unwrap();
        for _ in 0..3 {
            assert!(behind.extract(&RequestHead::of(&forged)).is_none());
            assert!(key::client_ip().extract(&RequestHead::of(&Request::new(()))).is_none());
        }
    });
    let logged = log.0.lock().unwrap().clone();
    let [(level, text)] = logged.as_slice() else { panic!("{logged:?}") };
    assert_eq!(*level, Level::ERROR);
    for fix in ["into_make_service_with_connect_info::<SocketAddr>()", "feature `tonic`", "std::net::SocketAddr"] {
        assert!(text.contains(fix), "{text}");
    }
}
