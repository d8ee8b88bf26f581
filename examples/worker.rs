//! Limits the worker of a message queue by tenant, so that the backlog of one tenant does not delay the jobs of
//! another.
//!
//! Run the example:
//!
//!     cargo run --release -p tower-quota-examples --example worker
//!
//! The example ends after less than a second.
//!
//! Add to your `Cargo.toml`:
//!
//!     tower-quota = { version = "0.1", features = ["throttle"] }
//!     tokio = { version = "1", features = ["macros", "rt-multi-thread", "sync"] }
//!     tower = { version = "0.5", features = ["util"] }

use std::convert::Infallible;
use std::error::Error;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::{Limiter, MemoryStore, Quota, ThrottleLayer, throttle::ThrottleError};

#[derive(Clone, Debug)]
struct Job {
    tenant: &'static str,
    number: u32,
    pages: u64,
}

/// Replace with your work.
async fn print(job: Job) -> Result<String, Infallible> {
    Ok(format!("{} {} printed", job.tenant, job.number))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Replace with your message queue. Here ann fills the queue before bob's jobs arrive.
    let (queue, mut jobs) = mpsc::unbounded_channel();
    for (number, pages) in [(1, 2), (2, 2), (3, 2), (4, 4)] {
        queue.send(Job {
            tenant: "ann",
            number,
            pages,
        })?;
    }
    queue.send(Job {
        tenant: "bob",
        number: 1,
        pages: 2,
    })?;
    queue.send(Job {
        tenant: "bob",
        number: 2,
        pages: 9,
    })?;
    drop(queue);

    // Every tenant prints 10 pages a second, with bursts of 4. At most 100 jobs wait in the process, up to 300 ms.
    let limiter = Limiter::new(MemoryStore::new(), "pages", Quota::per_second(10).burst(4));
    let throttle = ThrottleLayer::new(limiter, |job: &Job| job.tenant.to_owned())
        .cost_with(|job: &Job| job.pages)
        .max_wait(Duration::from_millis(300))
        .max_waiting(100);
    let mut worker = throttle.layer(service_fn(print));

    let start = Instant::now();
    let mut running = JoinSet::new();
    while let Some(job) = jobs.recv().await {
        let done = worker.ready().await?.call(job.clone());
        running.spawn(async move { (job, done.await) });
    }
    while let Some(finished) = running.join_next().await {
        let (job, result) = finished?;
        match result {
            Ok(done) => println!("{done} after {} ms", start.elapsed().as_millis()),
            Err(ThrottleError::Throttled(refusal)) => match refusal.retry_after() {
                // Return the job to your message queue, with the delay until the next delivery.
                Some(retry) => {
                    println!(
                        "{} {} goes back to the queue for {} ms",
                        job.tenant,
                        job.number,
                        retry.as_millis()
                    )
                }
                None => println!(
                    "{} {} can never be printed: {} pages",
                    job.tenant, job.number, job.pages
                ),
            },
            Err(error) => println!("{} {} failed: {error}", job.tenant, job.number),
        }
    }
    Ok(())
}
