//! Tests which refusals a full table drops.

use std::time::Duration;

use tower_quota_core::{Charge, Key, Quota, RefusalCache};

use crate::{MINUTE, Setting, client};

/// Makes a cache that has room for eight keys.
fn setting() -> Setting {
    let setting = Setting::new();
    let cache = RefusalCache::with_clock(setting.store.clone(), setting.clock.clone()).capacity(8);
    Setting { cache, ..setting }
}

#[test]
fn full_table_evicts_earliest_end() {
    let setting = setting();
    let hour = Quota::per_hour(1);
    let keys: Vec<Key<'_>> = (0..12).map(client).collect();
    let quotas = [MINUTE.burst(1), hour];
    for (key, quota) in keys
        .iter()
        .zip(std::iter::repeat_n(&quotas[1], 4).chain(std::iter::repeat(&quotas[0])))
    {
        setting.check(&[Charge::new("limit", quota, key)]);
        setting.check(&[Charge::new("limit", quota, key)]);
    }
    assert_eq!(
        (
            setting.cache.stats().remembered,
            setting.cache.stats().evicted
        ),
        (12, 4)
    );
    assert!(
        keys[..4]
            .iter()
            .all(|key| !setting.watch(&[Charge::new("limit", &hour, key)]).1)
    );
    let nothing =
        RefusalCache::with_clock(setting.store.clone(), setting.clock.clone()).capacity(0);
    let setting = Setting {
        cache: nothing,
        ..setting
    };
    assert!(setting.watch(&[Charge::new("limit", &hour, &keys[0])]).1);
    assert!(setting.watch(&[Charge::new("limit", &hour, &keys[0])]).1);
}

#[test]
fn full_table_drops_old_refusals_first() {
    let (setting, day, second) = (
        setting(),
        Quota::per_day(1).fixed_window(),
        Quota::per_second(1),
    );
    for number in 0..8 {
        let key = client(number);
        for is_allowed in [true, false] {
            let decision = setting.check(&[Charge::new("day", &day, &key)]);
            assert_eq!(decision.is_allowed(), is_allowed);
        }
    }
    assert_eq!(setting.cache.stats().remembered, 8);
    setting.clock.advance(Duration::from_secs(1));
    let flooding: Vec<Key<'_>> = (100..108).map(client).collect();
    for key in &flooding {
        assert!(
            setting
                .check(&[Charge::new("second", &second, key)])
                .is_allowed()
        );
    }
    for is_asked in [true, false] {
        for key in &flooding {
            let (_, was_asked) = setting.watch(&[Charge::new("second", &second, key)]);
            assert_eq!(was_asked, is_asked);
        }
    }
}
