//! One process of the soak.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tower_quota_core::{Charge, Key, Name, Quota, Store};
use tower_quota_redis::RedisStore;

use crate::load::Keys;
use crate::timing::rest;

/// Requests each key may make at once, and in each second.
pub(super) const BURST: u64 = 20;
const RATE: u64 = 10;
const MINUTE: u64 = 400;

/// Keys, drawn with a probability of 1 / rank.
const KEYS: usize = 4_096;
const TASKS: u64 = 32;
const NAME: Name = Name::new("soak");

/// The decisions that a worker saw of one key; instants are microseconds on Redis' clock.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) key: u64,
    pub(super) asked: u64,
    pub(super) admitted: u64,
    first: u64,
    last: u64,
}

/// Returns the most units that a key may be admitted between its first decision and its last.
pub(super) fn most(seen: &Seen) -> u64 {
    let span = seen.last - seen.first;
    (BURST + span * RATE / 1_000_000).min(MINUTE + span * MINUTE / 60_000_000)
}

pub(crate) fn run(url: &str, number: u64, seconds: u64) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let seen = runtime.block_on(ask_until(url, number, Duration::from_secs(seconds)))?;
    for seen in seen.values() {
        println!("{seen}");
    }
    Ok(())
}

async fn ask_until(
    url: &str,
    number: u64,
    span: Duration,
) -> Result<HashMap<u64, Seen>, Box<dyn Error>> {
    let store = RedisStore::options()
        .deadline(Duration::from_secs(5))
        .connect(url)
        .await?;
    let weights: Arc<Vec<f64>> = Arc::new(
        (1..=KEYS)
            .scan(0.0, |sum, rank| {
                *sum += 1.0 / rank as f64;
                Some(*sum)
            })
            .collect(),
    );
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, weights, stop) = (store.clone(), Arc::clone(&weights), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut random = Keys::new(number * TASKS + task + 1, 1 << 32);
                let mut seen: HashMap<u64, Seen> = HashMap::new();
                while !stop.load(Ordering::Relaxed) {
                    let draw = random.next() as f64 / (1_u64 << 32) as f64 * weights[KEYS - 1];
                    let key = weights.partition_point(|&sum| sum < draw) as u64;
                    ask(
                        &store,
                        key,
                        seen.entry(key).or_insert(Seen {
                            key,
                            ..Seen::default()
                        }),
                    )
                    .await;
                }
                seen
            })
        })
        .collect();
    rest(span).await;
    stop.store(true, Ordering::Relaxed);
    let mut all: HashMap<u64, Seen> = HashMap::new();
    for task in tasks {
        for (key, seen) in task.await? {
            all.entry(key).or_default().add(&seen);
        }
    }
    Ok(all)
}

async fn ask(store: &RedisStore, key: u64, seen: &mut Seen) {
    let (second, minute) = (
        Quota::per_second(RATE).burst(BURST),
        Quota::per_minute(MINUTE),
    );
    let subject = Key::number(NAME, key);
    match store
        .check(&[
            Charge::new("second", &second, &subject),
            Charge::new("minute", &minute, &subject),
        ])
        .await
    {
        Ok(decision) => {
            let at = decision.at().as_micros();
            let admitted = u64::from(decision.is_allowed());
            seen.add(&Seen {
                key,
                asked: 1,
                admitted,
                first: at,
                last: at,
            });
        }
        Err(error) => eprintln!("soak: {error}"),
    }
}

impl Seen {
    pub(super) fn add(&mut self, other: &Self) {
        self.first = if self.asked == 0 {
            other.first
        } else {
            self.first.min(other.first)
        };
        self.key = other.key;
        self.last = self.last.max(other.last);
        self.asked += other.asked;
        self.admitted += other.admitted;
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {} {}",
            self.key, self.asked, self.admitted, self.first, self.last
        )
    }
}

impl FromStr for Seen {
    type Err = Box<dyn Error>;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        match numbers[..] {
            [key, asked, admitted, first, last] => Ok(Self {
                key,
                asked,
                admitted,
                first,
                last,
            }),
            _ => Err(format!("five numbers expected, not {line:?}").into()),
        }
    }
}
