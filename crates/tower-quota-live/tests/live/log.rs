//! Tests the log lines of audited changes and of documents.

use std::convert::Infallible;
use std::fmt::{Debug, Write};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
use tower_quota_live::{
    BlockTarget, FileRules, LiveOptions, LiveRules, MemoryRules, RefusalFilter, RuleStore, Time,
    WithoutRules,
};
use tower_quota_rules::{CodeParts, Rules};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::fixture::{DAY, Instance, broken, document, eventually, new, rules_file, yaml};

/// The log lines of a test's thread, with level and target.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Level, String, String)>>>);

impl Log {
    fn has(&self, target: &str, parts: &[&str]) -> bool {
        let lines = self.0.lock().unwrap();
        lines
            .iter()
            .any(|(_, of, line)| of == target && parts.iter().all(|part| line.contains(part)))
    }

    /// Returns the lines with this text.
    pub(crate) fn lines(&self, part: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let texts = lines.iter().map(|(_, _, line)| line);
        texts.filter(|line| line.contains(part)).cloned().collect()
    }

    /// Returns the errors since the last call.
    fn errors(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap().split_off(0);
        let errors = lines.into_iter().filter(|line| line.0 == Level::ERROR);
        errors.map(|line| line.2).collect()
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
        let of = event.metadata();
        let line = (*of.level(), of.target().to_owned(), text.0);
        self.0.lock().unwrap().push(line);
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
    let _recording = tower_quota_dev::record_log(log.clone());
    let instance = Instance::in_memory().await;
    instance.put(new(5).comment("more room")).await;
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

#[tokio::test]
async fn start_without_rules_is_logged_as_error() {
    let log = Log::default();
    let _recording = tower_quota_dev::record_log(log.clone());
    let fallback = || Rules::parse(&document(3)).unwrap();
    for (choice, holds) in [
        (None, "the start fails"),
        (Some(WithoutRules::Refuse), "every request is refused"),
        (
            Some(WithoutRules::Fallback(fallback())),
            "the fallback limits hold",
        ),
    ] {
        let invalid = MemoryRules::new();
        invalid.put(None, broken()).await.unwrap();
        let missing = FileRules::new("/nowhere/rules.yaml").unwrap();
        let stores: [(Arc<dyn RuleStore>, &str); 3] = [
            (Arc::new(MemoryRules::new()), "is empty"),
            (Arc::new(invalid), "version 1 is invalid"),
            (Arc::new(missing), "No such file"),
        ];
        for (store, problem) in stores {
            let mut options = LiveOptions::new();
            if let Some(choice) = &choice {
                options = options.without_rules(choice.clone());
            }
            let _started = Instance::try_counting(MemoryStore::new(), store, options).await;
            let errors = log.errors();
            let [error] = errors.as_slice() else {
                unreachable!("{problem}: {errors:?}")
            };
            for part in [problem, "no rules are in force", holds] {
                assert!(error.contains(part), "{part}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn trace_names_clients_that_no_limit_refused() {
    let log = Log::default();
    let _recording = tower_quota_dev::record_log(log.clone());
    let instance = Instance::in_memory().await;
    let limits = "limits: [{ name: one, quota: 5/minute, key: header user }, { name: two, quota: 5/minute, key: header team }]";
    instance.put(yaml(limits)).await;
    let (scope, text) = ("header user", "ann");
    instance.block(BlockTarget::Scoped { scope, text }).await;
    assert_eq!(instance.ask("ann").await, 403);
    // A request without a team has the key of its user.
    assert_eq!(instance.ask("bob").await, 400);

    let refusals = instance
        .live
        .refusals(&RefusalFilter::default(), 9)
        .refusals;
    let traced = log.lines("request decided");
    assert_eq!((refusals.len(), traced.len()), (2, 2), "{traced:?}");
    for (refusal, event) in refusals.iter().rev().zip(&traced) {
        for field in [
            format!("outcome={:?}", refusal.outcome),
            format!("client={}", refusal.hash.as_deref().unwrap()),
            "scope=\"header user\"".to_owned(),
        ] {
            assert!(event.contains(&field), "{field} in {event}");
        }
    }
}

#[tokio::test]
async fn blocked_request_is_read_once_for_all_observers() {
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    let tenant = key::from_fn("tenant", move |head| {
        counted.fetch_add(1, Ordering::Relaxed);
        let tenant = head.headers().get("tenant")?;
        Some(tenant.as_bytes().to_vec())
    });
    let parts = CodeParts::new().key("tenant", tenant);
    let options = LiveOptions::new().read_with(move |document| Rules::parse_with(document, &parts));
    let log = Log::default();
    let _recording = tower_quota_dev::record_log(log.clone());
    let instance = Instance::start(MemoryRules::new(), options).await;
    let limits = "limits: [{ name: one, quota: 5/minute, key: code tenant }]";
    instance.put(yaml(limits)).await;
    instance.block(BlockTarget::Text("ann")).await;
    read.store(0, Ordering::Relaxed);
    let request = || Request::get("/").header("tenant", "ann");
    assert_eq!(instance.send(request()).await.status(), 403);
    assert_eq!(log.lines("request decided").len(), 1);
    // The first reading blocks the request, and the second one finds the client.
    assert_eq!(read.load(Ordering::Relaxed), 2);
}

/// Sends two requests of ann to a layer that admits one, and returns whether the event of the refusal has the hash of ann
/// by this seed.
async fn is_logged_by(
    seed: &[u8; 16],
    layer: &RateLimitLayer<MemoryStore>,
    live: &LiveRules,
) -> bool {
    let log = Log::default();
    let _recording = tower_quota_dev::record_log(log.clone());
    for _ in 0..2 {
        let inner = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(())));
        let request = Request::get("/").header("user", "ann").body(()).unwrap();
        layer.layer(inner).oneshot(request).await.unwrap();
    }
    let ann = live.handle().key("one", "ann").unwrap();
    let expected = format!("client={:016x}", ann.digest(seed) >> 64);
    let [event] = &log.lines("request decided")[..] else {
        unreachable!("{:?}", log.0)
    };
    event.contains(&expected)
}

fn layer() -> RateLimitLayer<MemoryStore> {
    let limit = Limit::new("one", Quota::per_day(1)).by(key::header("user"));
    let policy = Policy::new().limit(limit);
    RateLimitLayer::new(MemoryStore::new(), policy).trace_decisions(0)
}

#[tokio::test]
async fn seed_of_layer_outlives_the_default() {
    let (of_layer, of_options) = ([7; 16], [8; 16]);
    let started = async |layer: &RateLimitLayer<MemoryStore>, options: LiveOptions| {
        let options = options.without_rules(WithoutRules::Refuse);
        let live = LiveRules::start(layer.handle(), MemoryRules::new(), options);
        let live = live.await.unwrap();
        live.put(None, new(1)).await.unwrap();
        live
    };
    let secret = layer().trace_store_calls(of_layer);
    let live = started(&secret, LiveOptions::new()).await;
    assert!(is_logged_by(&of_layer, &secret, &live).await);

    let secret = layer().trace_store_calls(of_layer);
    let live = started(&secret, LiveOptions::new().key_seed(of_options)).await;
    assert!(is_logged_by(&of_options, &secret, &live).await);

    let without = layer();
    let live = started(&without, LiveOptions::new()).await;
    assert!(is_logged_by(b"tower-quota keys", &without, &live).await);
}

#[tokio::test]
async fn live_rules_of_a_handle_use_its_seed() {
    let of_layer = [7; 16];
    let secret = layer().trace_store_calls(of_layer);
    let live = LiveRules::from(secret.handle());
    assert!(is_logged_by(&of_layer, &secret, &live).await);
    let ann = live.handle().key("one", "ann").unwrap();
    let expected = format!("{:016x}", ann.digest(&of_layer) >> 64);
    assert_eq!(live.key_hash(&ann), expected);

    // The default seed is random.
    let without = layer();
    let live = LiveRules::from(without.handle());
    assert!(!is_logged_by(b"tower-quota keys", &without, &live).await);
    let logged = Log::default();
    let _recording = tower_quota_dev::record_log(logged.clone());
    let inner = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(())));
    let request = Request::get("/").header("user", "ann").body(()).unwrap();
    without.layer(inner).oneshot(request).await.unwrap();
    let hash = live.key_hash(&ann);
    assert_eq!(logged.lines(&format!("client={hash}")).len(), 1);
}

#[tokio::test]
async fn lost_limits_are_logged_with_their_overrides() {
    let log = Log::default();
    let _recording = tower_quota_dev::record_log(log.clone());
    let (_folder, path) = rules_file(5);
    let instance = Instance::start(FileRules::new(&path).unwrap(), LiveOptions::new()).await;
    let live = &instance.live;
    let ann = live.client_target("one", "ann").unwrap();
    let made = live.override_quota(
        "one",
        &ann,
        Quota::per_day(9),
        Time::now().after(DAY),
        "ops",
    );
    made.await.unwrap();
    let renamed = document(5).replace("name: one", "name: uno");
    let (warnings, _) = live.check(renamed.clone()).await.unwrap();
    let expected = "the limit \"one\" of the old rules is gone, and its overrides by operators (1) have no effect";
    assert!(warnings.to_string().contains(expected), "{warnings}");
    fs::write(&path, renamed).unwrap();
    eventually("the loss is logged", async || {
        instance.live.refresh().await;
        log.has(
            "tower_quota_live::follow::refresh",
            &["version=2", "is gone"],
        )
    })
    .await;
    assert!(
        log.has("tower_quota_live::follow::refresh", &[expected]),
        "{:?}",
        log.0
    );
}
