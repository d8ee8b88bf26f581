//! Tests that evictions release no limited client, and admit at most one more capacity each.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, proptest};
use tower_quota_core::{Charge, Key, MemoryStore, Name, Outcome, Quota, Store, Timestamp};
use tower_quota_testkit::{ManualClock, block_on};

use crate::{config, magnitude};

const CLIENT: Name = Name::new("client");
/// The number of clients with two limits that the filter of the smallest table always remembers.
const CLIENTS: usize = 5;
const LIMITS: [&str; 2] = ["one", "other"];
const NOW: u64 = 1_763_683_212_345_678;

/// A request, as the pause before it, the client and the limits.
type Request = (u64, usize, u8);

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (any::<bool>(), magnitude(1, 1 << 26), 0..CLIENTS, 1..4_u8);
    vec(
        request.prop_map(|(passes, micros, client, limits)| {
            (if passes { micros } else { 0 }, client, limits)
        }),
        1..200,
    )
}

fn quota() -> impl Strategy<Value = Quota> {
    (1..20_u64, magnitude(1_000_000, 86_400_000_000), 1..6_u64).prop_map(
        |(units, period, burst)| Quota::new(units, Duration::from_micros(period)).burst(burst),
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn evicted_clients_stay_refused(quotas in (quota(), quota()), capacity in 1..4_usize, requests in requests()) {
        let quotas = [quotas.0, quotas.1];
        let clock = ManualClock::at(Timestamp::from_micros(NOW));
        let store = MemoryStore::with_clock(capacity, clock.clone());
        let mut now = NOW;
        let mut taken = [0; LIMITS.len()];
        // The instant until which each limit of each client is spent.
        let mut spent_until = [[0; LIMITS.len()]; CLIENTS];
        for (passes, client, asked) in requests {
            now += passes;
            clock.set(Timestamp::from_micros(now));
            let key = Key::number(CLIENT, client as u64);
            let limits: Vec<usize> = (0..LIMITS.len()).filter(|limit| asked >> limit & 1 != 0).collect();
            let charges: Vec<Charge<'_>> =
                limits.iter().map(|&limit| Charge::new(LIMITS[limit], &quotas[limit], &key)).collect();
            let decision = block_on(store.check(&charges)).unwrap();
            for (&limit, status) in limits.iter().zip(decision.statuses()) {
                let spent = &mut spent_until[client][limit];
                // The filter counts in steps of 128 microseconds.
                prop_assert!(status.outcome.is_refusal() || *spent <= now + 127, "released too soon: {:?}", status);
                if let Outcome::Refuse(retry) = status.outcome {
                    *spent = now + u64::try_from(retry.as_micros()).unwrap();
                }
                taken[limit] += status.taken;
            }
        }
        for (limit, quota) in quotas.iter().enumerate() {
            let refilled = (now - NOW) * quota.refill() / quota.grain();
            let each = quota.capacity() + refilled;
            let most = CLIENTS as u64 * each + store.evicted() * quota.capacity();
            prop_assert!(taken[limit] <= most, "{} taken of at most {}", taken[limit], most);
        }
    }
}
