//! Every order of the counters, with the atomics of loom.

#[path = "../src/gate/bodies.rs"]
mod bodies;
#[path = "../src/gate/count.rs"]
mod count;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

use core::time::Duration;

use loom::sync::Arc;
use loom::thread;

use self::bodies::Bodies;
use self::count::Count;

#[test]
fn no_thread_takes_a_place_above_the_bound() {
    loom::model(|| {
        let count = Arc::new(Count::new());
        let threads = [2, 1].map(|bound| {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                let entered = count.enter(bound, 9, true);
                assert!(entered.is_none_or(|used| used <= bound));
                if entered.is_some() {
                    let _ = count.leave();
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count.used(), 0);
    });
}

#[test]
fn free_place_is_never_refused_at_once() {
    loom::model(|| {
        let count = Arc::new(Count::new());
        let other = Arc::clone(&count);
        // The other thread is refused, which must not take the free place for a moment.
        let refused = thread::spawn(move || assert_eq!(other.enter(0, 9, true), None));
        assert_eq!(count.enter(1, 9, true), Some(1));
        refused.join().unwrap();
    });
}

#[test]
fn waiting_request_misses_no_free_place() {
    loom::model(|| {
        let count = Arc::new(Count::new());
        assert_eq!(count.enter(1, 9, true), Some(1));
        let other = Arc::clone(&count);
        let leaves = thread::spawn(move || other.leave());
        // A request announces that it waits, and then tries again.
        count.announce(1);
        let has_entered = count.enter(1, 9, true).is_some();
        let must_serve = leaves.join().unwrap();
        assert!(
            has_entered || must_serve,
            "the place stays free while the request waits"
        );
    });
}

#[test]
fn newcomer_takes_no_place_of_a_waiting_request() {
    loom::model(|| {
        let count = Arc::new(Count::new());
        assert_eq!(count.enter(1, 9, true), Some(1));
        count.announce(1);
        let other = Arc::clone(&count);
        let leaves = thread::spawn(move || other.leave());
        assert_eq!(count.enter(1, 9, false), None);
        assert!(leaves.join().unwrap(), "the queue gets the place");
    });
}

#[test]
fn body_that_becomes_long_leaves_once() {
    loom::model(|| {
        let state = Arc::new((Count::new(), Bodies::new()));
        let (count, bodies) = &*state;
        assert_eq!(count.enter(1, 9, true), Some(1));
        let period = bodies.begin(Duration::ZERO, count);
        let other = Arc::clone(&state);
        let ends = thread::spawn(move || {
            let (count, bodies) = &*other;
            let _ = match bodies.end(period) {
                true => count.leave(),
                false => count.leave_long(),
            };
        });
        bodies.age(Duration::from_secs(1), count);
        ends.join().unwrap();
        assert_eq!((count.used(), count.in_progress()), (0, 0));
    });
}

#[test]
fn body_that_becomes_long_counts_below_the_ceiling() {
    loom::model(|| {
        let state = Arc::new((Count::new(), Bodies::new()));
        let (count, bodies) = &*state;
        assert_eq!(count.enter(1, 1, true), Some(1));
        bodies.begin(Duration::ZERO, count);
        let other = Arc::clone(&state);
        let ages = thread::spawn(move || other.1.age(Duration::from_secs(1), &other.0));
        assert_eq!(count.enter(1, 1, true), None);
        ages.join().unwrap();
        assert_eq!((count.used(), count.in_progress()), (0, 1));
    });
}
