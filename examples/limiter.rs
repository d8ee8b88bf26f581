//! Limits without HTTP: a job that calls another party's API no faster than that party allows.
//!
//!     cargo run --release -p tower-quota-examples --example limiter
//!
//! Runs for less than a second and ends.
//!
//! In `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["redis"] }
//!     tokio = { version = "1", features = ["macros", "rt-multi-thread"] }

use std::error::Error;
use std::time::Duration;

use tower_quota::{Limiter, MemoryStore, Quota, limiter::NotReady};

/// Stands for a call over the network.
async fn send_mail(number: u64) -> &'static str {
    if number == 3 {
        "invalid address"
    } else {
        "sent"
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The provider's limits: 10 calls a second, of which 4 at once, and 1000 an hour. With a `RedisStore` instead, all
    // instances of this job share them.
    let limiter = Limiter::new(MemoryStore::new(), "second", Quota::per_second(10).burst(4))
        .limit("hour", Quota::per_hour(1_000))
        .scope("mail provider")
        .max_wait(Duration::from_secs(5));
    let account = "account-17";

    for number in 1..=8 {
        // Waits for the turn. Dropped meanwhile, by a timeout or a `select!`, it gives the turn back.
        let turn = limiter.until_ready(account).await?;
        let result = send_mail(number).await;
        println!(
            "mail {number}: waited {} ms, {result}",
            turn.wait().as_millis()
        );
        if result != "sent" {
            // The provider does not count failed calls, so this one goes back.
            limiter.refund(account, turn).await?;
        }
    }

    // A call that must not wait: it is made now, or not at all.
    if !limiter.check(account).await?.is_allowed() {
        println!("status page: not now");
    }
    // A batch that would wait for longer than the job has time.
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
    let left = limiter.peek(account).await?;
    for status in left.statuses() {
        println!(
            "{}: {} of {} left",
            status.name,
            status.remaining(),
            status.limit
        );
    }
    Ok(())
}
