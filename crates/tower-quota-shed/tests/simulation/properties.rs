//! The limit stays within its range, for any sequence of completed requests.

use std::time::Duration;

use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::FileFailurePersistence;
use proptest::{collection, prop_assert};

use super::limit::{Kind, Limit, LimitSettings, Sample};

/// Any duration, and often a usual one.
fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        any::<u64>().prop_map(Duration::from_nanos),
        (any::<u64>(), 0_u32..1_000_000_000).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
        (0_u64..2_000).prop_map(Duration::from_millis),
    ]
}

/// A range with a start in it.
fn settings() -> impl Strategy<Value = LimitSettings> {
    (1_usize..100, 0_usize..100, 0_usize..1_000_000).prop_map(|(floor, above, rest)| {
        LimitSettings {
            floor,
            start: floor + above,
            ceiling: floor + above + rest,
        }
    })
}

fn config() -> ProptestConfig {
    let regressions = FileFailurePersistence::Direct("tests/simulation/proptest-regressions.txt");
    ProptestConfig {
        failure_persistence: Some(Box::new(regressions)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_samples_keep_the_range(
        settings in settings(),
        samples in collection::vec((durations(), durations(), any::<usize>(), any::<bool>(), 1_u32..2_000), 0..60),
    ) {
        let limit = Limit::new(&settings);
        for (ended, took, in_progress, answered, times) in samples {
            for time in 0..times {
                limit.completed(Sample {
                    ended: ended.saturating_add(Duration::from_millis(u64::from(time))),
                    took,
                    in_progress,
                    kind: if answered { Kind::Answered } else { Kind::Failed },
                });
                let level = limit.get();
                prop_assert!(settings.floor <= level && level <= limit.most());
                prop_assert!(limit.most() <= settings.ceiling);
            }
        }
    }

    #[test]
    fn full_service_keeps_the_range(
        settings in settings(),
        windows in collection::vec((1_u64..100_000, 1_u64..1_000_000, any::<bool>()), 0..60),
    ) {
        let limit = Limit::new(&settings);
        let mut now = Duration::ZERO;
        for (took, apart, answered) in windows {
            for _ in 0..1_000 {
                now += Duration::from_micros(apart);
                limit.completed(Sample {
                    ended: now,
                    took: Duration::from_micros(took),
                    in_progress: limit.get(),
                    kind: if answered { Kind::Answered } else { Kind::Failed },
                });
                let level = limit.get();
                prop_assert!(settings.floor <= level && level <= limit.most());
                prop_assert!(limit.most() <= settings.ceiling);
            }
        }
    }
}
