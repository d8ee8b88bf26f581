//! Runs the published cases and the conformance suite against both stores.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod case;
mod case_client;
mod differs;
mod models;
mod stated;
mod steps;

use std::time::Duration;

use tower_quota_core::{MemoryStore, Store};
use tower_quota_dev::RedisServer;
use tower_quota_redis::RedisStore;
use tower_quota_testkit::{ManualClock, block_on};

use self::differs::DIFFERS;

/// A store, and the clock of the store.
struct TestStore<S> {
    store: S,
    clock: ManualClock,
}

/// An expected result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Allowed,
    Remaining,
    RetryAfter,
    ResetAfter,
}

/// The reason why a case does not have to agree.
enum Difference {
    /// tower-quota answers the columns differently on purpose. An empty list means the entire case.
    OnPurpose(&'static [Column], &'static str),
    /// The case describes a behaviour that stores do not have.
    NotAStore(&'static str),
}

/// The deadline of a decision. Only a broken test reaches the deadline, even on a slow machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Replays all cases. Returns a summary, and a line for every case that does not agree.
async fn replay<S: Store>(name: &str, test_store: &TestStore<S>) -> Vec<String> {
    let cases = case::all();
    for (id, _) in DIFFERS {
        assert!(
            cases.iter().any(|case| case.id == *id),
            "{id} is listed and does not exist"
        );
    }
    let (mut agree, mut on_purpose, mut elsewhere) = (0, 0, 0);
    let (mut wrong, mut different) = (Vec::new(), Vec::new());
    for case in &cases {
        let listed = DIFFERS
            .iter()
            .find(|(id, _)| *id == case.id)
            .map(|(_, difference)| difference);
        if case.model == "stated" {
            let played = stated::play(test_store, &case.id).await;
            match listed {
                Some(Difference::NotAStore(reason)) => {
                    elsewhere += 1;
                    different.push(format!("{}: stated only: {reason}", case.id));
                }
                Some(Difference::OnPurpose(_, reason)) => {
                    on_purpose += 1;
                    different.push(format!("{}: {reason}", case.id));
                }
                None => agree += 1,
            }
            if played == matches!(listed, Some(Difference::NotAStore(_))) {
                wrong.push(format!(
                    "{}: played or declared to be elsewhere, one of the two",
                    case.id
                ));
            }
            continue;
        }
        let outcome = steps::play(test_store, case, &[]).await;
        match (listed, outcome) {
            (None, Ok(())) => agree += 1,
            (None, Err(difference)) => wrong.push(format!("{}: {difference}", case.id)),
            (Some(_), Ok(())) => {
                wrong.push(format!("{}: listed as different, and agrees", case.id))
            }
            (Some(Difference::OnPurpose(columns, reason)), Err(difference)) => {
                on_purpose += 1;
                different.push(format!("{}: {reason} ({difference})", case.id));
                // If the difference names columns, all other columns must agree.
                if !columns.is_empty()
                    && let Err(difference) = steps::play(test_store, case, columns).await
                {
                    wrong.push(format!(
                        "{} differs in more than {columns:?}: {difference}",
                        case.id
                    ));
                }
            }
            (Some(Difference::NotAStore(_)), Err(_)) => {
                wrong.push(format!("{}: has steps, so it has an answer", case.id))
            }
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    assert_eq!(agree + on_purpose + elsewhere, cases.len());
    different.insert(
        0,
        format!(
            "conformance {name}: {agree} agree, {on_purpose} differ on purpose, {elsewhere} stated"
        ),
    );
    different
}

#[test]
fn published_cases_hold_in_memory() {
    let clock = ManualClock::default();
    let test_store = TestStore {
        store: MemoryStore::with_clock(10_000, clock.clone()),
        clock,
    };
    println!("{}", block_on(replay("memory", &test_store)).join("\n  "));
}

#[tokio::test]
async fn published_cases_hold_in_redis() {
    let (server, clock) = (RedisServer::start(), ManualClock::default());
    let options = RedisStore::options()
        .prefix("published")
        .deadline(TEST_TIMEOUT)
        .clock(clock.clone());
    let test_store = TestStore {
        store: options.connect(&server.url()).await.unwrap(),
        clock,
    };
    // The reasons are the same as in memory.
    println!("{}", replay("redis", &test_store).await[0]);
    every_key_expires(&server);
}

mod redis {
    use tower_quota_core::{Charge, Operation};
    use tower_quota_testkit::conformance_tests;

    use super::*;

    /// A store with a separate server.
    struct Served {
        store: RedisStore,
        server: RedisServer,
    }

    impl Store for Served {
        type Error = <RedisStore as Store>::Error;
        type Future = <RedisStore as Store>::Future;

        fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
            self.store.apply(operation, charges)
        }
    }

    impl Drop for Served {
        fn drop(&mut self) {
            every_key_expires(&self.server);
        }
    }

    async fn redis(clock: ManualClock, prefix: String) -> Served {
        let server = RedisServer::start();
        let options = RedisStore::options()
            .prefix(prefix)
            .deadline(TEST_TIMEOUT)
            .clock(clock);
        Served {
            store: options.connect(&server.url()).await.unwrap(),
            server,
        }
    }

    fn on_tokio<F: Future>(future: F) -> F::Output {
        tokio::runtime::Runtime::new().unwrap().block_on(future)
    }

    conformance_tests!(redis, block_on = on_tokio);
}

/// Asserts that every key in the server has a time to live.
fn every_key_expires(server: &RedisServer) {
    let script = "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do \
                  if redis.call('PTTL', key) < 0 then return -1 end n = n + 1 end return n";
    let reply = server.command(&format!("EVAL \"{script}\" 0")).unwrap();
    let keys: i64 = reply.trim().trim_start_matches(':').parse().unwrap();
    assert!(keys >= 0, "a key without an expiry");
}
