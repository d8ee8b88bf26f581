//! Tests known refusals and last statuses while the store is unavailable.

use std::time::Duration;

use tower_quota_core::{Charge, Limiter, Quota, Store};
use tower_quota_testkit::block_on;

use crate::{MINUTE, Setting, client};

#[test]
fn outage_keeps_refusal_until_it_ends() {
    let setting = Setting::new();
    let key = client(1);
    let charge = Charge::new("minute", &MINUTE, &key);
    setting.check(&[charge.cost(6)]);
    setting.check(&[charge]);
    setting.fail(true);
    for seconds in (1..10).rev() {
        setting.clock.advance(Duration::from_secs(1));
        assert_eq!(
            setting.check(&[charge]).retry_after(),
            Some(Duration::from_secs(seconds))
        );
    }
    setting.clock.advance(Duration::from_secs(1));
    assert!(block_on(setting.cache.check(&[charge])).is_err());
}

#[test]
fn outage_refusals_come_from_memory() {
    let setting = Setting::new();
    let (key, other) = (client(1), client(2));
    let charge = Charge::new("minute", &MINUTE, &key).cost(6);
    setting.check(&[charge]);
    setting.check(&[charge]);
    setting.fail(true);
    setting.clock.advance(Duration::from_secs(1));
    for (key, retry) in [(&key, Some(Duration::from_secs(59))), (&other, None)] {
        let charge = Charge::new("minute", &MINUTE, key).cost(6);
        let (answer, known_refusal) = setting.cache.send(&[charge]);
        assert!(block_on(answer).is_err());
        assert_eq!(known_refusal.and_then(|known| known.retry_after()), retry);
    }
}

#[test]
fn limiter_keeps_refusing_in_outage() {
    let setting = Setting::new();
    let limiter = Limiter::new(setting.cache.clone(), "mails", MINUTE);
    for _ in 0..7 {
        block_on(limiter.check("ann")).unwrap();
    }
    setting.fail(true);
    setting.clock.advance(Duration::from_secs(5));
    let refused = block_on(limiter.check("ann")).unwrap();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(5)));
    assert!(block_on(limiter.check("bob")).is_err());
}

#[test]
fn refusal_ends_after_hour_of_outage() {
    let setting = Setting::new();
    let (key, day) = (client(1), Quota::per_day(1));
    let charge = Charge::new("day", &day, &key);
    setting.check(&[charge]);
    setting.check(&[charge]);
    setting.fail(true);
    setting.clock.advance(Duration::from_secs(3_599));
    assert!(!setting.check(&[charge]).is_allowed());
    setting.clock.advance(Duration::from_secs(1));
    assert!(block_on(setting.cache.check(&[charge])).is_err());
}

#[test]
fn known_status_ages_like_its_limit() {
    let share = MINUTE.divided(2);
    for (quota, share, after) in [
        (MINUTE, share, [(0, 0), (9, 0), (10, 1), (20, 2), (60, 3)]),
        (
            MINUTE.fixed_window(),
            MINUTE.fixed_window().divided(2),
            [(0, 0), (19, 0), (31, 0), (59, 0), (60, 3)],
        ),
    ] {
        let setting = Setting::new();
        let key = client(1);
        for cost in [6, 1] {
            setting.check(&[Charge::new("minute", &quota, &key).cost(cost)]);
        }
        setting.fail(true);
        let start = tower_quota_core::Clock::now(&setting.clock);
        for (seconds, left) in after {
            setting.clock.set(start + Duration::from_secs(seconds));
            let status = setting
                .cache
                .known_status(&Charge::new("minute", &share, &key))
                .unwrap();
            assert_eq!(
                (status.limit, status.remaining()),
                (3, left),
                "{quota:?} after {seconds} s"
            );
        }
        let other = client(2);
        assert!(
            setting
                .cache
                .known_status(&Charge::new("minute", &share, &other))
                .is_none()
        );
    }
}
