//! More requests than the server can decide: how many are answered in time.
//!
//! The server is behind a link that carries so many bytes a second, in the order in which they come: as a server does
//! that works at this rate, but at the same one whatever else this machine does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::contenders::{Limiter, SCRIPT, THREE, TOWER_QUOTA};
use crate::Outcome;
use crate::report::{Cell, Table};
use crate::traffic::Draws;
use crate::turns::{now, rest};
use tower_quota_dev::{Fault, FaultProxy, RedisServer};

/// The link's bytes a second, at which this machine is always faster: some twelve hundred decisions.
const SLOW: Fault = Fault::Slow(260_000);
/// Stores, as in eight instances of a service.
const STORES: u64 = 8;
/// The deadline of a request, tower-quota's default.
const DEADLINE: Duration = Duration::from_millis(50);

type Limiters = Arc<[Limiter]>;

pub(super) async fn measure(quick: bool) -> Outcome<Table> {
    let span = Duration::from_secs(if quick { 2 } else { 10 });
    let rounds = if quick { 1 } else { 3 };
    let server = RedisServer::start();
    let link = FaultProxy::to(server.port());
    let (mut ours, mut scripts) = (Vec::new(), Vec::new());
    for _ in 0..STORES {
        ours.push(Limiter::tower_quota(&link.url(), DEADLINE).await?);
        scripts.push(Limiter::script(&link.url(), DEADLINE).await?);
    }
    // A store loads its script with its first decision.
    for store in &ours {
        store.decide(&THREE, 0).await;
    }
    link.inflict(SLOW);
    let contenders: [Limiters; 2] = [ours.into(), scripts.into()];
    let columns = [TOWER_QUOTA, SCRIPT];
    let mut table = Table::new("answers in time, per capacity", &columns, rounds);
    let capacities = [
        capacity(span, &contenders[0]).await,
        capacity(span, &contenders[1]).await,
    ];
    for (name, multiple) in [
        ("at the capacity", 1.0),
        ("2 times", 2.0),
        ("4 times", 4.0),
        ("8 times", 8.0),
    ] {
        let mut shares = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (limiters, (capacity, shares)) in
                contenders.iter().zip(capacities.iter().zip(&mut shares))
            {
                let (in_time, _) = offer(capacity * multiple, span, limiters).await;
                shares.push(in_time / capacity);
                rest(Duration::from_secs(1)).await;
            }
        }
        table.row(name, shares.iter().map(|shares| Cell::highest(shares)));
    }
    Ok(table)
}

/// Returns the most answers in time per second, at rates that grow until most requests fail.
async fn capacity(span: Duration, limiters: &Limiters) -> f64 {
    let (mut rate, mut most, mut misses) = (100.0, 0.0_f64, 0);
    while misses < 2 {
        let (in_time, share) = offer(rate, span / 5, limiters).await;
        most = most.max(in_time);
        misses = if share < 0.5 { misses + 1 } else { 0 };
        rate *= 1.25;
    }
    most
}

/// Sends requests at a rate, whether or not earlier ones were answered. Returns the answers in time per second, and their
/// share of the requests.
async fn offer(rate: f64, span: Duration, limiters: &Limiters) -> (f64, f64) {
    let in_time = Arc::new(AtomicU64::new(0));
    let (mut draws, mut sent) = (Draws::new(1), 0_u64);
    let began = now();
    while began.elapsed() < span {
        let due = (began.elapsed().as_secs_f64() * rate) as u64;
        while sent < due {
            let (limiters, in_time) = (Arc::clone(limiters), Arc::clone(&in_time));
            let (draw, asked) = (draws.next(), now());
            tokio::spawn(async move {
                let is_answered = limiters[(draw % STORES) as usize]
                    .decide(&THREE, draw)
                    .await;
                // The deadline and some scheduling.
                if is_answered && asked.elapsed() <= DEADLINE + Duration::from_millis(5) {
                    in_time.fetch_add(1, Ordering::Relaxed);
                }
            });
            sent += 1;
        }
        rest(Duration::from_millis(1)).await;
    }
    rest(DEADLINE * 2).await;
    let in_time = in_time.load(Ordering::Relaxed) as f64;
    (in_time / span.as_secs_f64(), in_time / sent.max(1) as f64)
}
