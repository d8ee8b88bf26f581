//! Tests refusals of requests with a hold.

use std::time::Duration;

use tower_quota_core::{Charge, Key, Quota, Store};
use tower_quota_testkit::block_on;

use crate::{MINUTE, Setting, client};

const STREAMS: Quota = Quota::concurrent(1);

/// Returns the charges of a request with a rate limit and a hold.
fn request<'a>(key: &'a Key<'a>, other: &'a Key<'a>) -> [Charge<'a>; 2] {
    [
        Charge::new("minute", &MINUTE, key).cost(6),
        Charge::new("streams", &STREAMS, other),
    ]
}

#[test]
fn spent_limit_with_hold_is_remembered() {
    let (ann, everyone) = (client(1), Key::EVERYONE);
    for other in [&ann, &everyone] {
        let setting = Setting::new();
        let charges = request(&ann, other);
        let mut admitted = setting.check(&charges);
        setting.apply(admitted.refund().unwrap(), &charges[1..]);
        assert!(setting.watch(&charges).1);
        let (refusal, is_asked) = setting.watch(&charges);
        assert_eq!(refusal.retry_after(), Some(Duration::from_secs(60)));
        assert!(!is_asked);
        setting.fail(true);
        setting.clock.advance(Duration::from_secs(59));
        let refusal = setting.check(&charges);
        assert_eq!(refusal.retry_after(), Some(Duration::from_secs(1)));
        setting.clock.advance(Duration::from_secs(1));
        assert!(block_on(setting.cache.check(&charges)).is_err());
    }
}

#[test]
fn hold_alone_refuses_in_store_only() {
    let setting = Setting::new();
    let key = client(1);
    let held = [
        Charge::new("minute", &MINUTE, &key),
        Charge::new("streams", &STREAMS, &key),
    ];
    assert!(setting.check(&held).is_allowed());
    for _ in 0..3 {
        let (refusal, is_asked) = setting.watch(&held);
        assert!(!refusal.is_allowed() && is_asked);
    }
    setting.fail(true);
    assert!(block_on(setting.cache.check(&held)).is_err());
}

#[test]
fn released_hold_keeps_refusals() {
    let setting = Setting::new();
    let key = client(1);
    let charges = request(&key, &key);
    let refund = setting.check(&charges).refund().unwrap();
    setting.check(&charges);
    setting.apply(refund, &charges[1..]);
    assert!(!setting.watch(&charges).1);
    // A refund of other units ends the record.
    setting.apply(refund, &charges[..1]);
    assert!(setting.watch(&charges).0.is_allowed());
}

#[test]
fn remembered_hold_leaves_local_counters_full() {
    let setting = Setting::new();
    let key = client(1);
    let hold = Charge::new("streams", &STREAMS, &key);
    setting.check(&[hold]);
    setting.check(&[hold]);
    assert!(setting.cache.known_status(&hold).is_none());
}
