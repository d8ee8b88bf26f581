//! Tests three processes on one Redis, with shared counters and sixty changes under load.
//!
//! The test runs itself in other processes, as [`process`].

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use http::{Request, StatusCode};
use tower_quota::Decision;
use tower_quota_dev::RedisServer;
use tower_quota_live::{LiveOptions, RedisRules, RuleStore};
use tower_quota_redis::RedisStore;

use crate::fixture::{Instance, eventually, new, now, pause, redis_rules};

const PROCESSES: usize = 3;
const CHANGES: u64 = 60;
/// The units of the limit, enough that every request is counted.
const UNITS: u64 = 10_000_000;
/// The longest silence of a process.
const PATIENCE: Duration = Duration::from_secs(20);
/// The environment variable with the server's URL.
const URL: &str = "LIVE_RULES_REDIS";

/// A process with an instance, and its output.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

/// The counts of a process.
#[derive(Debug, Default)]
struct Totals {
    requests: u64,
    errors: u64,
    mixed: u64,
}

impl Process {
    fn start(url: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::process", "--ignored", "--nocapture"])
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Reads lines until this word. Returns the numbers after the word.
    fn until(&mut self, word: &str) -> Vec<u64> {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            // Search for the word, because the first line may follow text of the test harness.
            if let Some((_, numbers)) = line.split_once(word) {
                return numbers
                    .split_whitespace()
                    .map(|number| number.parse().unwrap())
                    .collect();
            }
        }
    }

    /// Ends the process, and returns the totals.
    fn end(mut self) -> Totals {
        drop(self.child.stdin.take());
        let numbers = self.until("totals");
        assert!(self.child.wait().unwrap().success());
        Totals {
            requests: numbers[0],
            errors: numbers[1],
            mixed: numbers[2],
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_changes_under_load_lose_no_count() {
    let server = RedisServer::start();
    let rules = redis_rules(&server, "storm");
    rules.put(None, new(UNITS)).await.unwrap();
    let url = server.url();
    let mut processes: Vec<Process> = (0..PROCESSES).map(|_| Process::start(&url)).collect();
    for process in &mut processes {
        assert_eq!(process.until("in-force"), [1]);
    }
    let mut took = Vec::new();
    for number in 2..=CHANGES + 1 {
        let put = now();
        rules
            .put(Some(number - 1), new(UNITS + number))
            .await
            .unwrap();
        for process in &mut processes {
            while process.until("in-force") != [number] {}
        }
        took.push(put.elapsed());
        assert!(
            put.elapsed() < Duration::from_secs(2),
            "change {number} took {:?}",
            put.elapsed()
        );
    }
    let totals: Vec<Totals> = processes.into_iter().map(Process::end).collect();
    took.sort_unstable();
    println!(
        "in force everywhere after {:?} (median), {:?} at most; {totals:?}",
        took[took.len() / 2],
        took[took.len() - 1]
    );
    assert!(
        totals
            .iter()
            .all(|totals| totals.errors == 0 && totals.mixed == 0 && totals.requests > 0),
        "{totals:?}"
    );

    // The counter has exactly the admitted requests of all processes, across all quotas.
    let instance =
        Instance::counting(counters(&url).await, Arc::new(rules), LiveOptions::new()).await;
    let status = instance.live.handle().peek("one", "ann").await.unwrap();
    let requests: u64 = totals.iter().map(|totals| totals.requests).sum();
    assert_eq!(status.limit - status.remaining(), requests);
}

/// Returns the shared counters, with a long deadline. A degraded decision on a busy machine would
/// hide a lost counter.
async fn counters(url: &str) -> RedisStore {
    RedisStore::options()
        .deadline(Duration::from_secs(10))
        .connect(url)
        .await
        .unwrap()
}

/// Runs one of the processes, which sends requests without a pause, and prints each active version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process of the test above"]
async fn process() {
    let url = std::env::var(URL).unwrap();
    let rules = Arc::new(RedisRules::new(&url, "storm").unwrap());
    let instance = Instance::counting(counters(&url).await, rules, LiveOptions::new()).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let [requests, errors, mixed] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
    let asking: Vec<_> = (0..4)
        .map(|_| {
            let (instance, is_over) = (instance.clone(), Arc::clone(&is_over));
            let (requests, errors, mixed) = (
                Arc::clone(&requests),
                Arc::clone(&errors),
                Arc::clone(&mixed),
            );
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = instance.send(Request::get("/").header("user", "ann")).await;
                    let limits = answer.extensions().get::<Decision>().map(|decision| {
                        decision
                            .statuses()
                            .iter()
                            .map(|status| status.limit)
                            .collect::<Vec<u64>>()
                    });
                    errors.fetch_add(
                        u64::from(answer.status() != StatusCode::OK),
                        Ordering::Relaxed,
                    );
                    match limits.as_deref() {
                        Some([one, two]) => {
                            mixed.fetch_add(u64::from(2 * one != *two), Ordering::Relaxed)
                        }
                        _ => errors.fetch_add(1, Ordering::Relaxed),
                    };
                    requests.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let input =
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()).unwrap());
    let mut shown = 0;
    while !input.is_finished() {
        let number = instance.number();
        if number != shown {
            println!("in-force {number}");
            shown = number;
        }
        pause(Duration::from_millis(1)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    for task in asking {
        task.await.unwrap();
    }
    eventually("it has closed", async || {
        instance.live.close(Duration::from_secs(5)).await
    })
    .await;
    let [requests, errors, mixed] =
        [requests, errors, mixed].map(|count| count.load(Ordering::Relaxed));
    println!("totals {requests} {errors} {mixed}");
}
