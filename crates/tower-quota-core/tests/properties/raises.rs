//! Tests that a raised capacity with a grant gives the units at most once.

use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use tower_quota_core::{Algorithm, Charge, Operation, Timestamp};

use super::bounds::most;
use super::trace::{KEY, Play, quota_by, requests};
use super::{config, magnitude};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn raise_adds_no_more_than_its_units(
        quota in prop_oneof![quota_by(Algorithm::TokenBucket), quota_by(Algorithm::Gcra)],
        units in magnitude(1, 1 << 40),
        trace in requests(80),
        (begins, lasts) in (any::<u8>(), any::<u8>()),
    ) {
        let Ok(raised) = quota.try_raised(units) else {
            return Ok(());
        };
        prop_assert_eq!(raised.capacity(), quota.capacity() + units);
        let (begins, mut play) = (usize::from(begins) % trace.len(), Play::new(quota));
        let ends = begins + usize::from(lasts) % 40;
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for (at, request) in trace.into_iter().enumerate() {
            if at == begins {
                play.quota = raised;
                let (now, one) = (Timestamp::from_micros(play.now), Charge::new("limit", &raised, &KEY));
                play.entry.decide(Operation::Refuse, &[one], now);
                let refund = Operation::Refund { taken_at: now };
                let granted = play.entry.decide(refund, &[one.cost(units)], now);
                prop_assert!(granted.statuses()[0].taken <= units);
                prop_assert!(granted.statuses()[0].remaining() >= units);
            } else if at == ends {
                play.quota = quota;
            }
            let cost = play.arrive(request);
            if play.check(cost).is_allowed() {
                admitted.push((play.now, cost));
            }
        }
        for (i, &(first, _)) in admitted.iter().enumerate() {
            let mut total = 0_u128;
            for &(last, cost) in &admitted[i..] {
                total += u128::from(cost);
                let most = most(&quota, first, last) + u128::from(units);
                prop_assert!(total <= most, "{} units from {} to {}, above {}", total, first, last, most);
            }
        }
    }
}
