//! Tests that instances which count separately by their shares keep the quota together.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use tower_quota_core::{ConfigError, Quota};

use super::bounds::most;
use super::trace::{Play, Request, micros, quota, requests};
use super::{config, magnitude};

const YEAR: u128 = 366 * 86_400_000_000;

/// Returns a number of instances, usually few, and sometimes more than units.
fn instances() -> impl Strategy<Value = u32> {
    prop_oneof![
        1..12_u32,
        magnitude(1, u32::MAX.into()).prop_map(|many| many.try_into().unwrap())
    ]
}

/// Returns requests, each with an instance.
fn arrivals() -> impl Strategy<Value = Vec<(u8, Request)>> {
    (requests(150), vec(any::<u8>(), 150))
        .prop_map(|(requests, whose)| whose.into_iter().zip(requests).collect())
}

/// Returns the units that instances may admit beyond the quota.
///
/// An instance has at least one unit, so each may admit one at once, and one more after a window's
/// border.
fn excess(quota: &Quota, instances: u32) -> u128 {
    let missing = u128::from(instances).saturating_sub(quota.capacity().into());
    if quota.algorithm().is_bucket() {
        missing
    } else {
        2 * missing
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn share_is_at_most_its_part(quota in quota(), instances in instances()) {
        let parts = u128::from(instances);
        let (units, period) = (u128::from(quota.units()), u128::from(micros(quota.period())));
        let share = match quota.try_divided(instances) {
            Ok(share) => share,
            Err(ConfigError::ShareTooSmall { .. }) => {
                prop_assert!(units * YEAR < period * parts || !quota.algorithm().is_bucket());
                prop_assert!(period * parts.div_ceil(units) > YEAR);
                return Ok(());
            }
            // A part of a small burst may fill up within a microsecond.
            Err(ConfigError::BurstTooSmall { burst, least }) => {
                prop_assert_eq!(u128::from(burst), (u128::from(quota.capacity()) / parts).max(1));
                prop_assert!(burst < least);
                return Ok(());
            }
            // Only a rounded rate may be impossible to count.
            Err(error) => {
                prop_assert!(matches!(error, ConfigError::NotRepresentable { .. }), "{error:?}");
                prop_assert!(period * parts > YEAR);
                return Ok(());
            }
        };
        prop_assert_eq!(share.algorithm(), quota.algorithm());
        prop_assert_eq!(share.window_offset(), quota.window_offset());
        let (its_units, its_period) = (u128::from(share.units()), u128::from(micros(share.period())));
        prop_assert!(its_units * period * parts <= units * its_period, "{share:?}");
        prop_assert!(u128::from(share.capacity()) * parts <= u128::from(quota.capacity()).max(parts));
        // The share is smaller than exact by less than a unit per burst, window, or year.
        prop_assert!((u128::from(share.capacity()) + 1) * parts > quota.capacity().into());
        let span = if quota.algorithm().is_bucket() { YEAR } else { its_period };
        prop_assert!(its_units * span / its_period >= units * span / (period * parts), "{share:?}");
        prop_assert_eq!(quota.try_divided(1), Ok(quota));
    }

    #[test]
    fn instances_together_admit_at_most_quota(
        quota in quota(),
        instances in 1..12_u32,
        arrivals in arrivals(),
    ) {
        let Ok(share) = quota.try_divided(instances) else { return Ok(()) };
        let mut plays: Vec<Play> = (0..instances).map(|_| Play::new(share)).collect();
        let mut now = plays[0].now;
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for (whose, request) in arrivals {
            let play = &mut plays[usize::from(whose) % instances as usize];
            play.now = now;
            let cost = play.arrive(request);
            now = play.now;
            if play.check(cost).is_allowed() {
                admitted.push((now, cost));
            }
        }
        for (i, &(first, _)) in admitted.iter().enumerate() {
            let mut total = 0_u128;
            for &(last, cost) in &admitted[i..] {
                total += u128::from(cost);
                let most = most(&quota, first, last) + excess(&quota, instances);
                prop_assert!(total <= most, "{total} units from {first} to {last}, above {most}");
            }
        }
    }
}
