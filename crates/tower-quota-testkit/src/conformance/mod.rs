//! Tests the requirements of every store, with a test for each case.
//!
//! 1. [`conformance_tests!`](crate::conformance_tests) makes a `#[test]` of each case, for your store.
//! 2. A case takes its steps on a store of its own, on a [`ManualClock`]. The
//!    model ([`tower_quota_core::decide`]) takes the same steps, and every field of the two
//!    decisions must be equal.
//! 3. A case also asserts its own results, which finds mistakes in the model.
//! 4. If you declare that your store lacks a [`Capability`], the suite skips the cases that need
//!    it, and prints their names.
//!
//! Cases never sleep or flush a database. Each case gets an unused prefix, so cases may run at the
//! same time.
//!
//! ```
//! use tower_quota_core::MemoryStore;
//! use tower_quota_testkit::{ManualClock, conformance_tests};
//!
//! async fn memory(clock: ManualClock, _prefix: String) -> MemoryStore {
//!     MemoryStore::with_clock(1_000, clock)
//! }
//!
//! conformance_tests!(memory);
//! # fn main() {}
//! ```
//!
//! If your store needs a runtime, pass a function that runs futures. You may also list the missing
//! capabilities:
//!
//! ```
//! # use tower_quota_core::MemoryStore;
//! # use tower_quota_testkit::{ManualClock, conformance_tests, conformance::Capability};
//! # async fn my_store(clock: ManualClock, _prefix: String) -> MemoryStore { MemoryStore::with_clock(1_000, clock) }
//! # fn on_a_runtime<F: Future>(future: F) -> F::Output { tower_quota_testkit::block_on(future) }
//! conformance_tests!(my_store, block_on = on_a_runtime, lacks = &[Capability::SlidingLogs, Capability::Penalties]);
//! # fn main() {}
//! ```

mod at_most;
pub(crate) mod capability;
mod change;
mod charging;
mod concurrency;
mod cost;
mod failure;
mod holds;
mod limits;
mod modes;
mod peek;
mod penalty;
mod promises;
mod refund;
mod samples;
mod shadow;
mod subsets;
#[cfg(test)]
mod tests;
mod time;
mod trial;
mod waiting;

use std::hash::{BuildHasher, Hasher, RandomState};

use tower_quota_core::Store;

pub use self::capability::Capability;
pub use self::failure::Failure;
use self::failure::Verdict;
use self::trial::Trial;
use crate::clock::ManualClock;

/// Runs one case. [`conformance_tests!`](crate::conformance_tests) makes a test of each.
///
/// `factory` makes a store on this clock, with counters that no other prefix shares.
///
/// # Errors
/// Returns a [`Failure`] with the step, the expected result and the result found.
pub async fn run<S, F>(
    case: &'static str,
    lacks: &'static [Capability],
    factory: F,
) -> Result<(), Failure>
where
    S: Store,
    F: AsyncFn(ManualClock, String) -> S,
{
    if let Some(need) = need_of(case).filter(|need| lacks.contains(need)) {
        println!("skipped: {case} needs {need:?}, which the store lacks");
        return Ok(());
    }
    // Draw a prefix from the system's randomness, because two runs against one server must not
    // share keys.
    let run = RandomState::new().build_hasher().finish();
    let clock = ManualClock::default();
    let store = factory(clock.clone(), format!("conformance-{run:016x}")).await;
    let mut trial = Trial::new(store, clock, lacks);
    let verdict = run_case(case, &mut trial).await;
    trial.conclude(verdict)
}

/// Defines the list of names, the calls of the cases, and the macro that makes tests of the cases.
/// A case runs `once`, or with `each` sample.
macro_rules! cases {
    ($d:tt $($module:ident $kind:ident $([$need:ident])?: $($case:ident),+;)+) => {
        /// The names of the cases.
        pub const CASES: &[&str] = &[$($(stringify!($case),)+)+];

        fn need_of(case: &str) -> Option<Capability> {
            match case {
                $($(stringify!($case))|+ => cases!(@need $($need)?),)+
                _ => None,
            }
        }

        async fn run_case(case: &str, trial: &mut Trial) -> Verdict {
            match case {
                $($(stringify!($case) => cases!(@run $kind, trial, $module::$case),)+)+
                _ => Ok(()),
            }
        }

        /// Makes a `#[test]` of each conformance case for your store.
        ///
        /// Pass an `async fn(ManualClock, String) -> impl Store`. You may add `block_on`, a
        /// function that runs a future to its end, which defaults to [`block_on`](crate::block_on).
        /// You may also add `lacks`, a slice of [`Capability`](crate::conformance::Capability),
        /// which defaults to an empty slice.
        #[macro_export]
        macro_rules! conformance_tests {
            ($d factory:expr $d(, lacks = $d lacks:expr)?) => {
                $crate::conformance_tests!($d factory, block_on = $crate::block_on $d(, lacks = $d lacks)?);
            };
            ($d factory:expr, block_on = $d block_on:path) => {
                $crate::conformance_tests!($d factory, block_on = $d block_on, lacks = &[]);
            };
            ($d factory:expr, block_on = $d block_on:path, lacks = $d lacks:expr) => {
                $($(
                    #[test]
                    fn $case() {
                        let result = $d block_on($crate::conformance::run(stringify!($case), $d lacks, $d factory));
                        if let Err(failure) = result {
                            panic!("{failure}");
                        }
                    }
                )+)+
            };
        }
    };
    (@run once, $trial:ident, $case:path) => { $case($trial).await };
    (@run each, $trial:ident, $case:path) => {{
        for ten in $trial.samples() {
            $trial.begin(&ten);
            $case($trial, &ten).await?;
        }
        Ok(())
    }};
    (@need) => { None };
    (@need $need:ident) => { Some(Capability::$need) };
}

cases! { $
    limits once: most_charges_are_decided_together, one_key_is_charged_all_or_nothing, binding_limit_is_named,
        order_of_limits_does_not_matter, keys_are_counted_separately;
    limits each [SeveralKeys]: several_keys_are_charged_all_or_nothing;
    subsets once: subsets_and_orders_share_the_counters, unasked_limits_keep_their_time;
    promises each: retry_after_is_exact, reset_after_is_exact, remaining_is_exact;
    cost each: cost_zero_charges_nothing, cost_above_capacity_never_fits, refusal_reports_what_is_left;
    refund once: refund_goes_to_its_own_window, refund_across_time_creates_no_units;
    refund each: refund_restores_units, refund_is_capped, refund_works_once;
    charging once: charge_goes_into_debt;
    charging each: reset_clears_counters;
    charging each [CountedRefusals]: counted_refusals_are_charged, refusal_elsewhere_is_judged;
    time once: earlier_window_is_still_read, windows_are_aligned;
    time each: clock_going_backwards_changes_nothing, entry_from_future_counts_as_missing,
        full_entry_equals_missing_entry;
    change once: two_versions_share_one_counter, alternating_versions_create_no_units;
    change each: raised_capacity_keeps_remaining_units, raised_window_applies_at_once,
        lowered_capacity_clamps_remaining_units, new_rate_applies_at_once;
    peek each [Peeks]: peek_reports_what_a_request_gets, peek_changes_nothing;
    waiting once [Waiting]: turns_are_evenly_spaced, max_wait_bounds_the_wait, bucket_can_make_requests_wait;
    shadow once [Shadows]: shadow_is_taken_with_the_others, shadow_hides_no_refusal;
    shadow each [Shadows]: shadow_never_refuses;
    penalty once [Penalties]: block_grows_and_expires, only_own_refusals_give_strikes, cost_zero_is_not_blocked,
        reset_clears_strikes, peek_sees_a_block;
    penalty each [Penalties]: first_refusals_are_free;
    at_most once [PartialGrants]: shadow_does_not_cut_partial_grants;
    at_most each [PartialGrants]: partial_grant_takes_what_is_left, partial_grants_take_the_same;
    holds once [Holds]: refund_releases_a_hold, hold_expires_unless_renewed, refused_hold_retries_within_a_second,
        hold_is_taken_with_the_others, changed_hold_keeps_held_units;
    modes each [ChargeModes]: reported_charge_takes_nothing, report_until_debt_refuses_in_debt,
        forced_charge_is_always_taken, reset_clears_a_debt;
    concurrency each: concurrent_checks_admit_the_quota, concurrent_checks_admit_the_tightest;
}
