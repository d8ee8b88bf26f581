//! Tests clients with clocks that are hours off.
//!
//! The test runs itself in three processes. A preloaded library replaces the function that reads
//! the clock, and adds hours, because a clock cannot change for a single process.

use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use tower_quota_core::{Charge, Quota, Store};
use tower_quota_dev::RedisServer;

use crate::load::{CAP, key};
use crate::rig::{TEST_TIMEOUT, store_at};

const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    int outcome = syscall(SYS_clock_gettime, clock, at);
    if (clock == CLOCK_REALTIME) at->tv_sec += atol(getenv("HOURS_OFF")) * 3600;
    return outcome;
}
"#;
const QUOTA: Quota = Quota::per_hour(CAP).sliding_window();
const DAY: u64 = 86_400;
/// The maximum seconds of the test.
const MARGIN: u64 = 600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_wrong_clocks_share_one_limit() {
    let server = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let (source, library) = (home.path().join("clock.c"), home.path().join("clock.so"));
    fs::write(&source, LIBRARY).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .status()
        .unwrap();
    assert!(compiled.success());

    let clients: Vec<_> = ["-5", "0", "7"]
        .into_iter()
        .map(|hours| {
            Command::new(env::current_exe().unwrap())
                .args([
                    "--exact",
                    "skew::client_with_skewed_clock_changes_nothing",
                    "--ignored",
                    "--nocapture",
                ])
                .envs([("HOURS_OFF", hours), ("REDIS_URL", &server.url())])
                .env("LD_PRELOAD", &library)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut admitted = 0;
    let (mut clocks, mut resets) = (Vec::new(), Vec::new());
    for client in clients {
        let output = client.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        let value = |name: &str| -> u64 {
            let found = text
                .split_whitespace()
                .find_map(|word| word.strip_prefix(name))
                .unwrap();
            found.parse().unwrap()
        };
        admitted += value("admitted=");
        clocks.push(value("clock="));
        resets.push(value("reset="));
    }
    // All processes count by the server's day, which ends at midnight of the right clock.
    let until_midnight = DAY - clocks[1] % DAY;
    for reset in resets {
        assert!(
            (reset + DAY + MARGIN - until_midnight) % DAY < 2 * MARGIN,
            "{reset} s, and {until_midnight} s until midnight"
        );
    }
    clocks.sort_unstable();
    assert!(
        clocks[2] - clocks[0] > 11 * 3600,
        "their clocks agree: {clocks:?}"
    );
    println!(
        "| clients with clocks 5 h behind, right, and 7 h ahead | - | {admitted} of {CAP} | - |"
    );
    assert_eq!(admitted, CAP);
}

#[tokio::test]
#[ignore = "is run by the test above, in a process with another clock"]
#[expect(
    clippy::disallowed_methods,
    reason = "to show that the clock is another"
)]
async fn client_with_skewed_clock_changes_nothing() {
    let clock = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let store = store_at(&env::var("REDIS_URL").unwrap(), TEST_TIMEOUT).await;
    let day = Quota::per_day(10 * CAP).calendar("UTC").unwrap();
    let (mut admitted, mut reset) = (0, 0);
    for _ in 0..CAP {
        let key = key("skewed");
        let decision = store
            .check(&[
                Charge::new("all", &QUOTA, &key),
                Charge::new("day", &day, &key),
            ])
            .await
            .unwrap();
        admitted += u64::from(decision.is_allowed());
        reset = decision.statuses()[1].reset_after().as_secs();
    }
    println!("clock={clock} admitted={admitted} reset={reset}");
}
