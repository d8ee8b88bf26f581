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

/// The stores of a contender, with a link of their own. A contender that sends too much leaves a queue in its link, which
/// must not delay anybody else.
struct Fleet {
    stores: Arc<[Limiter]>,
    _link: FaultProxy,
}

impl Fleet {
    async fn start(contender: &str, server: &RedisServer) -> Outcome<Self> {
        let link = FaultProxy::to(server.port());
        let mut stores = Vec::new();
        for _ in 0..STORES {
            let store = match contender {
                TOWER_QUOTA => Limiter::tower_quota(&link.url(), DEADLINE).await?,
                _ => Limiter::script(&link.url(), DEADLINE).await?,
            };
            // A store loads its script with its first decision.
            store.decide(&THREE, 0).await;
            stores.push(store);
        }
        link.inflict(SLOW);
        Ok(Self {
            stores: stores.into(),
            _link: link,
        })
    }
}

pub(super) async fn measure(quick: bool) -> Outcome<Table> {
    let span = Duration::from_secs(if quick { 2 } else { 10 });
    let rounds = if quick { 1 } else { 3 };
    let server = RedisServer::start();
    let columns = [TOWER_QUOTA, SCRIPT];
    let mut table = Table::new("answers in time, per capacity", &columns, rounds);
    let mut capacities = Vec::new();
    for contender in columns {
        capacities.push(capacity(span, contender, &server).await?);
    }
    for (name, multiple) in [
        ("at the capacity", 1.0),
        ("2 times", 2.0),
        ("4 times", 4.0),
        ("8 times", 8.0),
    ] {
        let mut shares = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for ((contender, capacity), shares) in columns.iter().zip(&capacities).zip(&mut shares)
            {
                let fleet = Fleet::start(contender, &server).await?;
                let (in_time, _) = offer(capacity * multiple, span, &fleet).await;
                shares.push(in_time / capacity);
            }
        }
        table.row(name, shares.iter().map(|shares| Cell::highest(shares)));
    }
    Ok(table)
}

/// Returns the most answers in time per second, at rates that grow until most requests fail.
async fn capacity(span: Duration, contender: &str, server: &RedisServer) -> Outcome<f64> {
    let (mut rate, mut most, mut misses) = (100.0, 0.0_f64, 0);
    while misses < 2 {
        let fleet = Fleet::start(contender, server).await?;
        let (in_time, share) = offer(rate, span / 5, &fleet).await;
        most = most.max(in_time);
        misses = if share < 0.5 { misses + 1 } else { 0 };
        rate *= 1.25;
    }
    Ok(most)
}

/// Sends requests at a rate, whether or not earlier ones were answered. Returns the answers in time per second, and their
/// share of the requests.
async fn offer(rate: f64, span: Duration, fleet: &Fleet) -> (f64, f64) {
    let in_time = Arc::new(AtomicU64::new(0));
    let (mut draws, mut sent) = (Draws::new(1), 0_u64);
    let began = now();
    while began.elapsed() < span {
        let due = (began.elapsed().as_secs_f64() * rate) as u64;
        while sent < due {
            let (stores, in_time) = (Arc::clone(&fleet.stores), Arc::clone(&in_time));
            let (draw, asked) = (draws.next(), now());
            tokio::spawn(async move {
                let is_answered = stores[(draw % STORES) as usize].decide(&THREE, draw).await;
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
