//! Metrics of live rules: their version, their source, the changes that people make.

use std::time::Duration;

use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_live::{
    BlockTarget, LiveOptions, LiveRules, MemoryRules, NewBlock, NewVersion, RedisRules,
    WithoutRules,
};
use tower_quota_rules::Format;

use crate::recorder::{recording, samples};

fn document(text: &str) -> NewVersion {
    NewVersion::new(text, Format::Yaml, "ann")
}

fn reloads(result: &str) -> String {
    format!("tower_quota_rules_reloads_total{{result=\"{result}\"}}")
}

#[test]
fn live_rules_report_version_and_changes() {
    let scrape = recording(async {
        let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
        let live = LiveRules::start(
            layer.handle(),
            MemoryRules::new(),
            LiveOptions::new().without_rules(WithoutRules::Refuse),
        )
        .await
        .unwrap();
        let first = live
            .put(None, document("allow_empty: true\n"))
            .await
            .unwrap();
        let network = BlockTarget::Network("203.0.113.0/24".parse().unwrap());
        live.block(network, NewBlock::block(Duration::from_secs(60), "ann"))
            .await
            .unwrap();
        live.rollback(None, first.number, "ann").await.unwrap();
        assert!(live.refresh().await);
    });
    let samples = samples(&scrape);
    assert_eq!(samples["tower_quota_rules_version"], 2.0);
    let [applied, confirmed] = ["applied", "confirmed"]
        .map(|age| samples[&format!("tower_quota_rules_{age}_timestamp_seconds")]);
    assert!(
        applied > 1.7e9 && confirmed >= applied,
        "{applied} {confirmed}"
    );
    assert!(samples[&reloads("ok")] >= 3.0);
    // The store was empty at the start.
    assert_eq!(
        (samples[&reloads("rejected")], samples[&reloads("failed")]),
        (0.0, 1.0)
    );
    for kind in ["put", "block", "rollback"] {
        assert_eq!(
            samples[&format!("tower_quota_audit_events_total{{kind=\"{kind}\"}}")],
            1.0,
            "{kind}"
        );
    }
}

#[test]
fn dead_source_confirms_nothing() {
    let scrape = recording(async {
        let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
        let dead = RedisRules::new("redis://127.0.0.1:1", "dead").unwrap();
        let options = LiveOptions::new().start_deadline(Duration::from_millis(1));
        let options = options.without_rules(WithoutRules::Refuse);
        let live = LiveRules::start(layer.handle(), dead, options)
            .await
            .unwrap();
        assert!(!live.refresh().await);
    });
    let samples = samples(&scrape);
    assert!(samples[&reloads("failed")] >= 1.0);
    assert_eq!(samples[&reloads("ok")], 0.0);
    assert_eq!(samples["tower_quota_rules_version"], 0.0);
    assert!(!samples.contains_key("tower_quota_rules_confirmed_timestamp_seconds"));
}
