//! Limits work without HTTP. A job calls the API of a mail provider no faster than the provider allows.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example limiter
//!
//! The example ends after less than a second.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["redis"] }
//!     tokio = { version = "1", features = ["macros", "rt-multi-thread"] }

use std::error::Error;
use std::time::Duration;

use tower_quota::{Limiter, MemoryStore, Quota, limiter::NotReady};

/// Replace with your call over the network.
async fn send_mail(number: u64) -> &'static str {
    if number == 3 {
        "invalid address"
    } else {
        "sent"
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The provider allows 10 calls a second with bursts of 4, and 1000 calls an hour. If several instances of your job
    // run, use a `RedisStore`, so that all instances share the limits.
    let limiter = Limiter::new(MemoryStore::new(), "second", Quota::per_second(10).burst(4))
        .limit("hour", Quota::per_hour(1_000))
        .scope("mail provider")
        .max_wait(Duration::from_secs(5));
    let account = "account-17";

    for number in 1..=8 {
        // If a timeout or `select!` drops the future, the limiter takes back the slot.
        let permit = limiter.until_ready(account).await?;
        let result = send_mail(number).await;
        println!(
            "mail {number}: waited {} ms, {result}",
            permit.wait().as_millis()
        );
        if result != "sent" {
            // The provider does not count failed calls, so refund the unit.
            limiter.refund(account, permit).await?;
        }
    }

    // Use `check` for a call that must not wait.
    if !limiter.check(account).await?.is_allowed() {
        println!("status page: not now");
    }
    // A batch needs 4 units, but the job has no time to wait for them.
    match limiter
        .until_n_ready(account, 4, Duration::from_millis(50))
        .await
    {
        Err(NotReady::Refused(decision)) => println!(
            "batch: accepted at the earliest in {:?}",
            decision.retry_after()
        ),
        other => drop(other?),
    }
    let decision = limiter.peek(account).await?;
    for status in decision.statuses() {
        println!(
            "{}: {} of {} left",
            status.name,
            status.remaining(),
            status.limit
        );
    }
    Ok(())
}
