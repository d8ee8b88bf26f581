//! Panics about invalid configuration in code point at the caller.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;
use std::time::Duration;

use tower_quota::{Limit, Policy, Quota, key, when};

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static FILE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns the file that a panic points at.
fn file_of_panic(mistake: fn()) -> String {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| match panic.location() {
            Some(place) if WATCHED.get() => FILE.set(place.file().to_owned()),
            _ => usual(panic),
        }));
    });
    WATCHED.set(true);
    let outcome = panic::catch_unwind(mistake);
    WATCHED.set(false);
    assert!(outcome.is_err(), "it should have panicked");
    FILE.take()
}

#[test]
fn panics_point_at_the_caller() {
    let mistakes: [(&str, fn()); 18] = [
        ("new", || _ = Quota::new(0, Duration::from_secs(1))),
        ("per_second", || _ = Quota::per_second(0)),
        ("per_minute", || _ = Quota::per_minute(0)),
        ("per_hour", || _ = Quota::per_hour(0)),
        ("per_day", || _ = Quota::per_day(0)),
        ("burst", || _ = Quota::per_day(1).burst(0)),
        ("divided", || _ = Quota::per_day(1).divided(0)),
        ("fixed_window", || {
            _ = Quota::per_day(1).burst(2).fixed_window()
        }),
        ("sliding_window", || {
            _ = Quota::per_day(1).burst(2).sliding_window()
        }),
        ("sliding_log", || {
            _ = Quota::per_day(1).burst(2).sliding_log()
        }),
        ("offset", || {
            _ = Quota::per_day(1).offset(Duration::from_secs(1))
        }),
        ("from_first_request", || {
            _ = Quota::per_day(1).from_first_request()
        }),
        ("limit", || {
            _ = Policy::new().limit(Limit::new("", Quota::per_day(1)))
        }),
        ("instances", || _ = Policy::new().instances(0)),
        ("header", || _ = key::header("two words")),
        ("path", || _ = when::path("users")),
        ("host", || _ = when::host("a.test:80")),
        ("address_in", || {
            _ = when::address_in(key::client_ip(), ["here"])
        }),
    ];
    for (name, mistake) in mistakes {
        assert_eq!(file_of_panic(mistake), file!(), "{name}");
    }
}
