//! The step from one window to the next level, without a service.

use std::time::Duration;

use super::limit::{LimitSettings, Search, Window};

/// A window of one second at a full level, with so many answers.
fn full(level: u64, answers: u64) -> Window {
    Window {
        span: Duration::from_secs(1),
        completed: answers,
        failed: 0,
        full: answers,
        in_progress: level * answers,
        busy: level * 1_000_000_000,
    }
}

fn search() -> Search {
    Search::new(LimitSettings {
        floor: 2,
        start: 100,
        ceiling: 1_000,
    })
}

/// Returns the limit after a window at the limit of 100 and one at the lower level.
fn limit_after(upper: Window, lower: Window) -> usize {
    let mut search = search();
    assert!(search.step(&upper).unwrap().level < 100);
    assert_eq!(search.step(&lower).unwrap().level, search.limit);
    search.limit
}

#[test]
fn same_answers_at_both_levels_lower_the_limit() {
    assert_eq!(limit_after(full(100, 5_000), full(60, 5_000)), 94);
}

#[test]
fn answers_in_proportion_raise_the_limit() {
    assert_eq!(limit_after(full(100, 5_000), full(60, 3_000)), 125);
}

#[test]
fn one_percent_of_answers_is_worth_six_of_places() {
    assert_eq!(limit_after(full(100, 5_000), full(60, 4_550)), 125);
    assert_eq!(limit_after(full(100, 5_000), full(60, 4_650)), 94);
}

#[test]
fn idle_time_in_a_window_is_not_compared() {
    let idle = |window: Window| Window {
        span: Duration::from_secs(10),
        ..window
    };
    assert_eq!(limit_after(full(100, 5_000), idle(full(60, 5_000))), 100);
    assert_eq!(limit_after(idle(full(100, 5_000)), full(60, 3_000)), 100);
}

#[test]
fn failures_are_no_answers() {
    let failing = Window {
        failed: 2_000,
        ..full(100, 5_000)
    };
    assert_eq!(limit_after(failing, full(60, 3_000)), 94);
    let equal = Window {
        failed: 3_000,
        ..full(60, 3_000)
    };
    assert_eq!(limit_after(failing, equal), 125);
}

#[test]
fn few_requests_decide_nothing() {
    let mut search = search();
    assert!(search.step(&full(100, 449)).is_none());
    assert_eq!(search.step(&full(100, 450)).unwrap().level, 60);
    assert!(search.step(&full(60, 149)).is_none());
    assert!(search.step(&full(60, 150)).is_some());
}

#[test]
fn held_places_are_not_taken_back() {
    let mut search = search();
    let held = Window {
        busy: 20 * 1_000_000_000,
        ..full(100, 5_000)
    };
    assert_eq!(search.step(&held).unwrap().level, 92);
}

#[test]
fn limit_that_refuses_nobody_stays() {
    let mut search = search();
    let loose = Window {
        full: 2_000,
        ..full(100, 5_000)
    };
    for _ in 0..10 {
        assert_eq!(search.step(&loose).unwrap().level, 100);
    }
    // The load has gone while the lower level was in force.
    assert_eq!(search.step(&full(100, 5_000)).unwrap().level, 60);
    assert_eq!(search.step(&loose).unwrap().level, 100);
    assert_eq!(search.limit, 100);
}

#[test]
fn steps_grow_while_the_direction_stays() {
    let mut search = search();
    let mut step = |answers: u64| {
        let upper = search.limit;
        let level = search.step(&full(upper as u64, 5_000)).unwrap().level;
        search.step(&full(level as u64, answers));
        search.limit as i64 - upper as i64
    };
    assert_eq!(step(3_000), 25, "the first steps are large");
    let falling: Vec<i64> = (0..7).map(|_| step(5_000)).collect();
    assert_eq!(falling, [-7, -7, -6, -6, -12, -21, -16]);
    assert_eq!(step(3_000), 3);
}

#[test]
fn floor_is_the_lowest_level() {
    let mut search = Search::new(LimitSettings {
        floor: 8,
        start: 9,
        ceiling: 10,
    });
    for answers in [5_000, 3_000, 5_000, 5_000, 3_000, 3_000, 3_000] {
        let upper = search.limit;
        let level = search.step(&full(upper as u64, 5_000)).unwrap().level;
        assert!((8..upper).contains(&level));
        search.step(&full(level as u64, answers));
        assert!((9..=10).contains(&search.limit));
    }
}
