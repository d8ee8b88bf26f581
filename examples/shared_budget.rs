//! Shares one budget for a third party's API between several processes, with counters in Redis. Start the example more
//! than once.
//!
//! The processes share the counters, but not the push-backs of `ThrottleLayer::pushback`. The third party has to refuse
//! each process once.
//!
//! Run the example:
//!
//!     REDIS_URL=redis://127.0.0.1:6379 cargo run --release -p tower-quota-examples --example shared_budget
//!
//! The example sends as many messages as the budget allows, and ends.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["redis", "throttle"] }
//!     tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//!     tower = { version = "0.5", features = ["util"] }

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::throttle::StoreFailure;
use tower_quota::{Limiter, Quota, RedisStore, ThrottleLayer, throttle::ThrottleError};

struct Message {
    account: &'static str,
    number: u32,
}

/// Replace with your call over the network.
async fn send(message: Message) -> Result<u32, std::io::Error> {
    Ok(message.number)
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    // Give the store a prefix named for your service. Two services with one prefix share their counters.
    let store = match RedisStore::options().prefix("messages").connect(&url).await {
        Ok(store) => store,
        Err(error) => {
            eprintln!("{error}");
            eprintln!("start a server (redis-server), or name yours: REDIS_URL=redis://HOST:PORT");
            return Ok(ExitCode::FAILURE);
        }
    };

    // The account may send 12 messages an hour, however many processes you start.
    let limiter = Limiter::new(store, "messages", Quota::per_hour(12));
    let throttle = ThrottleLayer::new(limiter, |message: &Message| message.account.to_owned())
        // Do not wait, because the next unit may be minutes away.
        .max_wait(Duration::ZERO)
        // The third party charges for extra messages, so send no message while Redis is unavailable.
        .on_store_failure(StoreFailure::Fail);
    let mut service = throttle.layer(service_fn(send));

    let (mut sent, mut throttled, mut failed) = (0, 0, 0);
    for number in 1..=10 {
        match service
            .ready()
            .await?
            .call(Message {
                account: "account-17",
                number,
            })
            .await
        {
            Ok(number) => {
                sent += 1;
                println!("message {number}: sent");
            }
            Err(ThrottleError::Throttled(refusal)) => {
                throttled += 1;
                println!("message {number}: not sent, {refusal}");
            }
            Err(error) => {
                failed += 1;
                println!("message {number}: {error}");
            }
        }
    }
    println!("{sent} sent, {throttled} throttled, {failed} failed");
    Ok(ExitCode::SUCCESS)
}
