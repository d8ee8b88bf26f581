//! What every store must do, as cases that any store can run.
//!
//! Each case takes its steps on a store of its own, on a clock that is moved by hand, and each step is decided by the
//! model ([`tower_quota_core::decide`]) too: every field of the two decisions must be equal. On top of that a case states
//! what it is there to show, so that a mistake in the model does not pass unseen.
//!
//! Nothing sleeps and nothing is flushed: a case gets a prefix nobody has used, and cases may run side by side.

mod at_most;
mod change;
mod charging;
mod concurrency;
mod cost;
mod failure;
mod join;
mod limits;
mod model;
mod penalty;
mod promises;
mod refund;
mod samples;
mod shadow;
#[cfg(test)]
mod tests;
mod time;
mod trial;
mod waiting;

use std::hash::{BuildHasher, Hasher, RandomState};

use tower_quota_core::Store;

pub use self::failure::Failures;
use self::failure::Outcome;
use self::trial::Trial;
use crate::clock::ManualClock;

/// Runs every case and answers how many there were.
///
/// `factory` makes a store that takes its time from the clock and shares its counters with no other prefix; it is
/// called once per case. The suite needs no runtime of its own: run it on whatever the store runs on.
///
/// # Errors
/// [`Failures`] names each case that failed, the step it failed at, and what was expected there. Its `Debug` is as
/// readable as its `Display`, so that `unwrap` in a test says it all.
///
/// ```
/// use tower_quota_core::MemoryStore;
/// use tower_quota_testkit::{ManualClock, block_on, conformance};
///
/// let memory = async |clock: ManualClock, _prefix: String| MemoryStore::with_clock(1_000, clock);
/// assert!(block_on(conformance::suite(memory))? > 20);
/// # Ok::<(), conformance::Failures>(())
/// ```
pub async fn suite<S, F>(factory: F) -> Result<usize, Failures>
where
    S: Store,
    F: AsyncFn(ManualClock, String) -> S,
{
    // Drawn from the system's randomness: two runs against one Redis must not meet.
    let run = RandomState::new().build_hasher().finish();
    let mut failures = Failures::default();
    for &case in CASES {
        let clock = ManualClock::default();
        let store = factory(clock.clone(), format!("suite-{run:016x}-{case}")).await;
        if let Err(failure) = run_case(case, &mut Trial::new(store, clock)).await {
            failures.add(case, failure);
        }
    }
    if failures.is_empty() { Ok(CASES.len()) } else { Err(failures) }
}

/// Names the cases once: for the list of names and for the call behind each.
macro_rules! cases {
    ($($module:ident: $($case:ident),+;)+) => {
        /// The names of the cases, in the order they run.
        pub const CASES: &[&str] = &[$($(stringify!($case),)+)+];

        async fn run_case<S: Store>(case: &str, trial: &mut Trial<S>) -> Outcome {
            match case {
                $($(stringify!($case) => $module::$case(trial).await,)+)+
                _ => Ok(()),
            }
        }
    };
}

cases! {
    limits: all_or_nothing_on_one_key, all_or_nothing_on_several_keys, the_binding_limit_is_named,
        the_order_of_limits_does_not_matter, limits_come_and_go, keys_are_counted_apart;
    promises: retry_after_is_exact, reset_after_is_exact, remaining_is_exact;
    cost: nothing_is_a_peek, above_capacity_is_never, remaining_on_refusal_is_real;
    refund: a_refund_gives_back, a_refund_is_capped, a_refund_is_for_its_own_window, a_refund_works_once;
    charging: a_charge_goes_into_debt, a_reset_forgets, refusals_can_be_counted, refused_elsewhere;
    time: backwards_changes_nothing, whole_is_as_good_as_forgotten, the_earlier_window_is_still_read,
        windows_are_aligned;
    change: a_raise_keeps_what_is_left, a_cut_clamps, the_new_rate_applies, two_versions_side_by_side;
    waiting: turns_are_evenly_spaced, patience_bounds_the_wait, a_token_can_be_waited_for;
    shadow: a_shadow_refuses_nobody, a_shadow_is_taken_with_the_others, a_shadow_hides_no_refusal;
    penalty: the_first_refusals_are_free, a_block_grows_and_is_forgiven, any_refusal_is_held_against_the_client,
        a_peek_is_not_blocked;
    at_most: as_much_as_is_left, all_take_the_same, a_shadow_has_no_say;
    concurrency: exactly_the_quota, exactly_the_tightest_quota;
}
