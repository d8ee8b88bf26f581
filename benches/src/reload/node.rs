//! One process of a storm: a layer on Redis under load, whose rules follow Redis too.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use clap::Args;
use tower::{Layer, Service};
use tower_quota::{Policy, RateLimitLayer, RedisStore};
use tower_quota_live::{LiveOptions, LiveRules, RedisRules};

use super::LIMITS;
use super::tally::Tally;
use crate::layer::service::Trivial;
use crate::timing::now;

/// The requests that a process has under way.
const OUTSTANDING: usize = 16;

/// The arguments of a process.
#[derive(Args, Debug)]
pub(crate) struct Node {
    url: String,
    /// The length of the load, in milliseconds.
    millis: u64,
}

/// Connects, waits for a line of input, sends requests, and prints the tally as JSON.
pub(crate) fn run(node: &Node) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let tally = Arc::new(Mutex::new(Tally::default()));
        // A late answer would be counted as an error of the change: twenty processes share two cores.
        let store = RedisStore::options()
            .deadline(Duration::from_secs(2))
            .connect(&node.url)
            .await?;
        let counted = Arc::clone(&tally);
        let layer = RateLimitLayer::new(store, Policy::new())
            .headers([])
            .on_decision(move |decided| {
                let mut tally = counted.lock().unwrap_or_else(PoisonError::into_inner);
                let units = |name| decided.decision()?.status(name).map(|status| status.limit);
                match (
                    decided.is_degraded(),
                    LIMITS.map(|name| units(name.as_str())),
                ) {
                    (false, [Some(one), Some(other)]) => {
                        tally.decided([one, other], decided.reason().is_none())
                    }
                    _ => tally.failed += 1,
                }
            });
        let live = LiveRules::start(
            layer.handle(),
            RedisRules::new(&node.url, "bench")?,
            LiveOptions::new(),
        )
        .await?;
        println!("ready");
        tokio::task::spawn_blocking(|| io::stdin().read_line(&mut String::new())).await??;

        let until = now() + Duration::from_millis(node.millis);
        let service = layer.layer(Trivial);
        let workers: Vec<_> = (0..OUTSTANDING)
            .map(|_| {
                let mut service = service.clone();
                tokio::spawn(async move {
                    while now() < until {
                        let _ = service.call(Request::new(Body::empty())).await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await?;
        }
        live.close(Duration::from_secs(2)).await;
        let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{}", serde_json::to_string(&*tally)?);
        Ok(())
    })
}
