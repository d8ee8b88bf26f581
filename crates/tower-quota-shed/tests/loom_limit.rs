//! Every order in which threads can complete requests at the end of a window.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use limit::{Kind, Limit, LimitSettings, Sample};
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

#[path = "."]
mod limit {
    #![allow(dead_code, reason = "the layer uses more")]

    #[path = "../src/limit/adaptive.rs"]
    mod adaptive;
    #[path = "../src/limit/sample.rs"]
    mod sample;
    #[path = "../src/limit/window.rs"]
    mod window;

    pub(crate) use self::adaptive::Limit;
    pub(crate) use self::sample::{Kind, Sample};
    pub(crate) use self::settings::LimitSettings;

    mod settings {
        #[derive(Clone, Debug)]
        pub(crate) struct LimitSettings {
            pub(crate) floor: usize,
            pub(crate) start: usize,
            pub(crate) ceiling: usize,
        }
    }

    /// A search that moves with every window, so that few requests suffice.
    mod search {
        use super::settings::LimitSettings;
        use super::window::Window;
        use std::time::Duration;

        #[derive(Debug)]
        pub(crate) struct Search {
            pub(crate) limit: usize,
            pub(crate) latency: Option<Duration>,
            pub(crate) base: Option<Duration>,
        }

        pub(crate) struct Next {
            pub(crate) level: usize,
            pub(crate) least: Duration,
        }

        impl Search {
            pub(crate) fn new(settings: LimitSettings) -> Self {
                Self {
                    limit: settings.start,
                    latency: None,
                    base: None,
                }
            }

            pub(crate) fn step(&mut self, window: &Window) -> Option<Next> {
                assert!(window.completed > 0, "a window without requests");
                self.limit -= 1;
                Some(Next {
                    level: self.limit,
                    least: Duration::from_millis(10),
                })
            }
        }
    }

    mod sync {
        pub(crate) use loom::sync::Mutex;
        pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

        pub(crate) const STRIPES: usize = 2;
    }
}

fn sample(ended: u64, in_progress: usize) -> Sample {
    Sample {
        ended: Duration::from_millis(ended),
        took: Duration::from_millis(10),
        in_progress,
        kind: Kind::Answered,
    }
}

/// Completes requests of so many threads at the end of a window. Returns the limit, which falls by one with each window.
fn end_window(threads: u64, check: fn(&Limit)) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let limit = Arc::new(Limit::new(&LimitSettings {
            floor: 2,
            start: 20,
            ceiling: 100,
        }));
        let running: Vec<_> = (0..threads)
            .map(|number| {
                let limit = Arc::clone(&limit);
                thread::spawn(move || {
                    limit.completed(sample(1_000 + number, 20));
                })
            })
            .collect();
        for thread in running {
            thread.join().unwrap();
        }
        check(&limit);
    });
}

#[test]
fn one_of_two_threads_ends_a_window() {
    end_window(2, |limit| assert_eq!(limit.get(), 19));
}

#[test]
fn next_window_ends_after_its_time() {
    end_window(2, |limit| {
        limit.completed(sample(1_005, 20));
        assert_eq!(limit.get(), 19);
        limit.completed(sample(1_020, 20));
        assert_eq!((limit.get(), limit.most()), (18, 18));
        assert_eq!(limit.snapshot().limit, 18);
    });
}
