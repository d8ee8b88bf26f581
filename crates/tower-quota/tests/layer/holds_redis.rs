//! Units that requests hold in Redis, by two processes, one of which is killed.

use std::convert::Infallible;
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use axum::body::Body;
use http::{Request, Response};
use tokio::sync::Semaphore;
use tower::{Layer, ServiceExt, service_fn};
use tower_quota::{Limit, Quota, RateLimitLayer, RedisStore, store::Timestamp};
use tower_quota_dev::RedisServer;
use tower_quota_testkit::ManualClock;

use crate::shared::{answer_to, millis, policy_of, secs};

const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

async fn layer(url: &str, clock: ManualClock) -> RateLimitLayer<RedisStore> {
    // A healthy server on a busy machine must not count as unavailable.
    let options = RedisStore::options().deadline(secs(5)).clock(clock);
    let store = options.connect(url).await.unwrap();
    let policy = policy_of(Limit::new("streams", Quota::concurrent(2)));
    RateLimitLayer::new(store, policy)
}

async fn status(layer: &RateLimitLayer<RedisStore>) -> u16 {
    let service = layer.layer(service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    }));
    let answer = answer_to(&service, Request::new(Body::empty())).await;
    answer.status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_of_killed_process_expire() {
    let server = RedisServer::start();
    let clock = ManualClock::at(START);
    let layer = layer(&server.url(), clock.clone()).await;
    assert_eq!(status(&layer).await, 200);

    let child = "holds_redis::other_process_holds_both_units";
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", child, "--ignored", "--nocapture"])
        .env("REDIS_URL", server.url())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_held = lines
        .map(Result::unwrap)
        .any(|line| line.contains("both units are held"));
    assert!(is_held);
    assert_eq!(status(&layer).await, 429);
    child.kill().unwrap();
    child.wait().unwrap();

    clock.advance(secs(59));
    assert_eq!(status(&layer).await, 429);
    // The holds of one microsecond have instants of their own.
    clock.advance(millis(1_001));
    assert_eq!(status(&layer).await, 200);
}

#[tokio::test]
#[ignore = "is run by the test above, in a process that is killed"]
async fn other_process_holds_both_units() {
    let layer = layer(&env::var("REDIS_URL").unwrap(), ManualClock::at(START)).await;
    let entered = Arc::new(Semaphore::new(0));
    let entering = Arc::clone(&entered);
    let service = layer.layer(service_fn(move |_: Request<Body>| {
        entering.add_permits(1);
        std::future::pending::<Result<Response<Body>, Infallible>>()
    }));
    for _ in 0..2 {
        tokio::spawn(service.clone().oneshot(Request::new(Body::empty())));
    }
    let _both = entered.acquire_many(2).await.unwrap();
    println!("both units are held");
    std::future::pending::<()>().await;
}
