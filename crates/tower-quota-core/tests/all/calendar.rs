//! Tests calendar windows, their borders in time zones, and that the model and the memory store
//! agree.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use tower_quota_core::{
    Algorithm, Charge, ConfigError, Decision, Entry, Key, MemoryStore, Name, Operation, Quota,
    Store, Timestamp,
};
use tower_quota_testkit::{ManualClock, block_on};

const BERLIN: &str = "Europe/Berlin";
/// Zones in the north and the south, with half hours, and with clocks that change at midnight.
const ZONES: [&str; 8] = [
    "UTC",
    BERLIN,
    "America/New_York",
    "America/Santiago",
    "Asia/Beirut",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
];
const HOUR: u64 = 3_600_000_000;
const DAY: u64 = 24 * HOUR;

fn calendar(quota: Quota, zone: &str) -> Quota {
    quota.calendar(zone).unwrap()
}

/// Reads an instant such as `2026-03-28T23:00:00Z`.
fn instant(text: &str) -> u64 {
    let instant: jiff::Timestamp = text.parse().unwrap();
    u64::try_from(instant.as_microsecond()).unwrap()
}

fn ann() -> Key<'static> {
    Key::owned(Name::new("user"), "ann")
}

fn decide(entry: &mut Entry, operation: Operation, quota: &Quota, cost: u64, now: u64) -> Decision {
    let ann = ann();
    let charge = Charge::new("plan", quota, &ann).cost(cost);
    entry.decide(operation, &[charge], Timestamp::from_micros(now))
}

/// Spends the whole quota at `now`, and returns when the window ends.
fn end_at(quota: &Quota, now: u64) -> u64 {
    let mut entry = Entry::default();
    let decision = decide(&mut entry, Operation::Check, quota, quota.capacity(), now);
    assert!(decision.is_allowed());
    let reset = decision.statuses()[0].reset_after();
    let refused = decide(&mut entry, Operation::Check, quota, 1, now);
    assert_eq!(refused.retry_after(), Some(reset), "at {now}");
    let end = Timestamp::from_micros(now) + reset;
    assert_eq!(quota.window_ends(Timestamp::from_micros(now)), Some(end));
    end.as_micros()
}

/// Checks that one window begins and ends at these instants, to the microsecond.
fn assert_window(quota: &Quota, start: &str, end: &str) {
    let (start, end) = (instant(start), instant(end));
    for now in [start, start + 1, start + (end - start) / 2, end - 1] {
        assert_eq!(end_at(quota, now), end, "at {now}");
    }
    assert_eq!(end_at(quota, start - 1), start);
    assert!(end_at(quota, end) > end);
}

#[test]
fn months_have_28_to_31_days() {
    let month = calendar(Quota::per_month(100), BERLIN);
    // Check winter, a common year, a leap year, and months in which summer time begins or ends.
    assert_window(&month, "2025-12-31T23:00:00Z", "2026-01-31T23:00:00Z");
    assert_window(&month, "2026-01-31T23:00:00Z", "2026-02-28T23:00:00Z");
    assert_window(&month, "2028-01-31T23:00:00Z", "2028-02-29T23:00:00Z");
    assert_window(&month, "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z");
    assert_window(&month, "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z");
}

#[test]
fn days_have_23_to_25_hours() {
    let day = calendar(Quota::per_day(100), BERLIN);
    assert_window(&day, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
    assert_window(&day, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
    assert_window(&day, "2026-07-01T22:00:00Z", "2026-07-02T22:00:00Z");
    // Clocks change by half an hour.
    let day = calendar(Quota::per_day(100), "Australia/Lord_Howe");
    assert_window(&day, "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z");
}

#[test]
fn day_begins_after_midnight_that_is_skipped() {
    let day = calendar(Quota::per_day(100), "America/Santiago");
    assert_window(&day, "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z");
    // A whole day is skipped.
    let day = calendar(Quota::per_day(100), "Pacific/Apia");
    assert_window(&day, "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z");
    assert_window(&day, "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z");
}

#[test]
fn day_continues_when_clocks_return_before_midnight() {
    // At a minute past midnight, clocks in Newfoundland went back to 23:01.
    let day = calendar(Quota::per_day(100), "America/St_Johns");
    let midnight = "2010-11-07T02:30:00Z";
    assert_window(&day, "2010-11-06T02:30:00Z", midnight);
    assert_window(&day, midnight, "2010-11-08T03:30:00Z");
    let repeated_hour = instant("2010-11-07T02:45:00Z");
    assert_eq!(end_at(&day, repeated_hour), instant("2010-11-08T03:30:00Z"));
}

#[test]
fn weeks_begin_on_monday() {
    let week = calendar(Quota::per_week(100), BERLIN);
    // Week 1 of 2026 begins in 2025, and week 53 ends in 2027.
    assert_window(&week, "2025-12-28T23:00:00Z", "2026-01-04T23:00:00Z");
    assert_window(&week, "2026-12-27T23:00:00Z", "2027-01-03T23:00:00Z");
    // This week loses an hour.
    assert_window(&week, "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z");
}

#[test]
fn years_have_365_or_366_days() {
    let year = calendar(Quota::per_year(100), "Asia/Kolkata");
    assert_window(&year, "2025-12-31T18:30:00Z", "2026-12-31T18:30:00Z");
    assert_window(&year, "2027-12-31T18:30:00Z", "2028-12-31T18:30:00Z");
}

#[test]
fn window_around_epoch_is_cut_off() {
    let day = calendar(Quota::per_day(100), "America/New_York");
    for now in [0, 1, 5 * HOUR - 1] {
        assert_eq!(end_at(&day, now), 5 * HOUR);
    }
    assert_eq!(end_at(&day, 5 * HOUR), 29 * HOUR);
}

#[test]
fn last_instants_have_nominal_windows() {
    let month = calendar(Quota::per_month(100), BERLIN);
    for now in [u64::MAX, 1 << 60, instant("9999-12-30T00:00:00Z")] {
        let plain = month.at(Timestamp::from_micros(now));
        assert_eq!(plain, Quota::per_month(100).fixed_window());
    }
    end_at(&month, 1 << 60);
}

#[test]
fn one_value_counts_across_many_borders() {
    for zone in ZONES {
        let (day, zone) = (
            calendar(Quota::per_day(3), zone),
            TimeZone::get(zone).unwrap(),
        );
        let (mut entry, mut last, mut admitted) = (Entry::default(), Date::ZERO, 3);
        let start = instant("2026-01-01T00:00:00Z");
        for hour in 0..2 * 366 * 24 {
            let now = start + hour * HOUR;
            let civil = jiff::Timestamp::from_microsecond(now.cast_signed()).unwrap();
            let date = zone.to_datetime(civil).date();
            if date != last {
                assert_eq!(admitted, 3, "on {last} in {zone:?}");
                (last, admitted) = (date, 0);
            }
            let decision = decide(&mut entry, Operation::Check, &day, 1, now);
            admitted += u32::from(decision.is_allowed());
        }
    }
}

#[test]
fn refund_reaches_its_own_window_only() {
    let month = calendar(Quota::per_month(10), BERLIN);
    let border = instant("2026-03-31T22:00:00Z");
    let refund = |taken_at, now| {
        let mut entry = Entry::default();
        let taken_at = decide(&mut entry, Operation::Check, &month, 4, taken_at).at();
        decide(&mut entry, Operation::Charge, &month, 2, now);
        let decision = decide(&mut entry, Operation::Refund { taken_at }, &month, 3, now);
        decision.statuses()[0].remaining()
    };
    assert_eq!(refund(border - 5, border - 1), 7);
    assert_eq!(refund(border - 1, border), 8);
    assert_eq!(refund(border, border + 1), 7);
}

#[test]
fn entry_of_longest_window_is_decoded() {
    // In this leap year, the clocks of Almaty went back by an hour.
    let year = calendar(Quota::per_year(10), "Asia/Almaty");
    assert_window(&year, "2023-12-31T18:00:00Z", "2024-12-31T19:00:00Z");
    for quota in [year, calendar(Quota::per_day(10), BERLIN)] {
        let mut entry = Entry::default();
        decide(
            &mut entry,
            Operation::Check,
            &quota,
            1,
            instant("2024-06-01T00:00:00Z"),
        );
        assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }
}

#[test]
fn quota_keeps_nominal_length() {
    let month = calendar(Quota::per_month(10), BERLIN);
    assert_eq!(month.time_zone(), Some(BERLIN));
    assert_eq!(month.algorithm(), Algorithm::FixedWindow);
    assert_eq!((month.units(), month.capacity()), (10, 10));
    assert_eq!(month.period(), Duration::from_micros(30 * DAY));
    assert_eq!(month.window(), month.period());
    assert_eq!(
        month,
        calendar(Quota::per_month(10).fixed_window(), "europe/berlin")
    );
    assert_ne!(month, calendar(Quota::per_month(10), "UTC"));
    assert_ne!(month, Quota::per_month(10).fixed_window());
}

#[test]
fn other_quotas_have_no_calendar() {
    let minute = Quota::per_minute(10);
    assert_eq!(minute.time_zone(), None);
    assert_eq!(minute.at(Timestamp::EPOCH), minute);
    assert_eq!(
        minute.calendar(BERLIN),
        Err(ConfigError::NotACalendarPeriod(Duration::from_secs(60)))
    );
    let month = Quota::per_month(10);
    let window = month.fixed_window();
    let error = |quota: Quota| quota.calendar(BERLIN).unwrap_err();
    assert_eq!(
        error(month.burst(20)),
        ConfigError::BurstOnWindow(Algorithm::FixedWindow)
    );
    assert_eq!(
        error(month.sliding_log()),
        ConfigError::NotAFixedWindow(Algorithm::SlidingLog)
    );
    let second_place = ConfigError::NotAFixedWindow(Algorithm::FixedWindow);
    assert_eq!(error(window.offset(Duration::from_secs(1))), second_place);
    assert_eq!(error(window.from_first_request()), second_place);
    let placed = calendar(month, BERLIN);
    assert_eq!(
        placed.try_offset(Duration::from_secs(1)),
        Err(second_place.clone())
    );
    assert_eq!(placed.calendar("UTC"), Err(second_place));
    for zone in ["", "Berlin", "Europe/Berlin ", "../../etc/passwd"] {
        let error = window.calendar(zone).unwrap_err();
        assert_eq!(error, ConfigError::UnknownZone(zone.to_owned()));
        assert!(error.to_string().contains(&format!("{zone:?}")), "{error}");
    }
}

#[test]
fn other_algorithm_drops_calendar() {
    let month = calendar(Quota::per_month(10), BERLIN);
    assert_eq!(month.fixed_window(), month);
    assert_eq!(month.sliding_log(), Quota::per_month(10).sliding_log());
    assert_eq!(month.token_bucket(), Quota::per_month(10));
}

#[test]
fn share_keeps_calendar_if_possible() {
    let day = calendar(Quota::per_day(7), BERLIN);
    assert_eq!(day.divided(3), calendar(Quota::per_day(2), BERLIN));
    // One unit in seven days is not a week of the calendar.
    let share = calendar(Quota::per_day(1), BERLIN).divided(7);
    assert_eq!(share, Quota::per_week(1).fixed_window());
}

#[test]
fn evicted_client_stays_limited_until_border() {
    let month = calendar(Quota::per_month(2), BERLIN);
    let clock = ManualClock::default();
    let store = MemoryStore::with_clock(1, clock.clone());
    let ask = |key: &Key<'_>, now: u64| {
        clock.set(Timestamp::from_micros(now));
        let charge = Charge::new("plan", &month, key);
        block_on(store.check(&[charge])).unwrap().is_allowed()
    };
    let (now, border) = (
        instant("2026-02-20T12:00:00Z"),
        instant("2026-02-28T23:00:00Z"),
    );
    let ann = ann();
    assert!([ask(&ann, now), ask(&ann, now), !ask(&ann, now)] == [true; 3]);
    for other in 0..9 {
        for _ in 0..3 {
            ask(&Key::number(Name::new("other"), other), now);
        }
    }
    assert!(store.evicted() > 0);
    assert!(!ask(&ann, now + HOUR));
    assert!(!ask(&ann, border - 1));
    assert!(ask(&ann, border));
}

fn any_calendar() -> impl Strategy<Value = Quota> {
    let units = prop::sample::select(vec![
        Quota::per_day(5),
        Quota::per_week(5),
        Quota::per_month(5),
        Quota::per_year(5),
    ]);
    (units, prop::sample::select(&ZONES[..])).prop_map(|(quota, zone)| calendar(quota, zone))
}

proptest! {
    #[test]
    fn windows_are_contiguous(
        zone in prop::sample::select(&ZONES[..]),
        now in instant("2015-01-01T00:00:00Z")..instant("2112-01-01T00:00:00Z"),
    ) {
        let civil = |now: u64| {
            let instant = jiff::Timestamp::from_microsecond(now.cast_signed()).unwrap();
            TimeZone::get(zone).unwrap().to_datetime(instant).date()
        };
        let is_first = |day: Date, nominal: Quota| match nominal.units() {
            1 => true,
            7 => day.weekday() == Weekday::Monday,
            30 => day.day() == 1,
            _ => day.day_of_year() == 1,
        };
        for nominal in [Quota::per_day(1), Quota::per_week(7), Quota::per_month(30), Quota::per_year(365)] {
            let quota = calendar(nominal, zone);
            let plain = quota.at(Timestamp::from_micros(now));
            let length = u64::try_from(plain.period().as_micros()).unwrap();
            let end = end_at(&quota, now);
            let start = end - length;
            prop_assert!(start <= now && now < end);
            for border in [start, end] {
                let (before, after) = (civil(border - 1), civil(border));
                prop_assert!(before < after && is_first(after, nominal), "{before} {after}");
            }
            prop_assert_eq!(end_at(&quota, start), end);
            prop_assert_eq!(end_at(&quota, end - 1), end);
            prop_assert_eq!(end_at(&quota, start - 1), start);
            let days = length.abs_diff(DAY * nominal.units());
            prop_assert!(days <= 2 * DAY + HOUR, "{length}");
        }
    }

    #[test]
    fn memory_store_agrees_with_model(
        quotas in prop::collection::vec(any_calendar(), 3),
        start in instant("2015-01-01T00:00:00Z")..instant("2090-01-01T00:00:00Z"),
        steps in prop::collection::vec((0..7_u8, 0..9_u8, 0..3_usize, 0..4_u64, 0..400_u64), 1..60),
    ) {
        let clock = ManualClock::default();
        let store = MemoryStore::with_clock(2, clock.clone());
        let (ann, mut entry, minute) = (ann(), Entry::default(), Quota::per_minute(9));
        let mut now = start;
        let mut last: Option<Decision> = None;
        for (action, pause, other, cost, long) in steps {
            let promised = last.as_ref().map_or(Duration::ZERO, |last| last.statuses()[0].reset_after());
            let promised = u64::try_from(promised.as_micros()).unwrap();
            now = match pause {
                0..3 => now,
                3 => now + promised.saturating_sub(1),
                4 | 5 => now + promised,
                6 => now + 1,
                7 => now + long * HOUR,
                _ => now - long * HOUR,
            };
            let taken_at = last.as_ref().map_or(Timestamp::EPOCH, Decision::at);
            let operation = match action {
                0 => Operation::Charge,
                1 => Operation::Refund { taken_at },
                2 => Operation::Peek,
                3 if long == 0 => Operation::Reset,
                _ => Operation::Check,
            };
            let plan = Charge::new("plan", &quotas[other], &ann).cost(cost);
            let charges = [
                plan,
                Charge::new("second", &quotas[0], &ann).cost(cost),
                Charge::new("minute", &minute, &ann),
            ];
            let charges = &charges[..1 + (long % 3) as usize];
            clock.set(Timestamp::from_micros(now));
            let expected = entry.decide(operation, charges, Timestamp::from_micros(now));
            let decided = block_on(store.apply(operation, charges)).unwrap();
            prop_assert_eq!(&decided, &expected);
            if !entry.is_empty() {
                prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry.clone()));
            }
            last = Some(expected);
        }
        prop_assert_eq!(store.evicted(), 0);
    }
}
