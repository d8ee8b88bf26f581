//! Many processes behind one Redis, their clocks hours apart, asking for a few thousand keys: no key is ever admitted
//! more than its quota allows.
//!
//! The parent starts a Redis and the workers, each with its wall clock skewed by libfaketime, sums the units admitted
//! per key, and compares them with the quota over the time between a key's first and last decision by Redis' clock.

mod worker;

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tower_quota_testkit::RedisServer;

pub(crate) use self::worker::run as worker;
use self::worker::{BURST, Seen, most};
use crate::report::Report;

/// Hours by which the workers' clocks are off.
const SKEWS: [i32; 8] = [0, -1, 1, -7, 5, -24, 48, 3];

/// The path of the library in Debian's package `libfaketime`.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

pub(crate) fn run(quick: bool) -> Result<Report, Box<dyn Error>> {
    if !Path::new(FAKETIME).exists() {
        return Err(format!("{FAKETIME} is missing: apt-get install faketime").into());
    }
    let seconds = if quick { 10 } else { 60 };
    let server = RedisServer::start();
    let workers: Vec<Child> = SKEWS
        .iter()
        .enumerate()
        .map(|(number, hours)| start(&server, number, *hours, seconds))
        .collect::<Result<_, _>>()?;

    let mut keys: HashMap<u64, Seen> = HashMap::new();
    let mut decisions = 0;
    for mut worker in workers {
        let output = worker.stdout.take().ok_or("a worker without output")?;
        for line in BufReader::new(output).lines() {
            let seen: Seen = line?.parse()?;
            decisions += seen.asked;
            keys.entry(seen.key).or_default().add(&seen);
        }
        if !worker.wait()?.success() {
            return Err("a worker failed".into());
        }
    }

    let mut report = Report::default();
    let over = keys
        .values()
        .filter(|seen| seen.admitted > most(seen))
        .count();
    let admitted: u64 = keys.values().map(|seen| seen.admitted).sum();
    // A key that was asked for all the time was admitted exactly its quota.
    let busy: Vec<&Seen> = keys
        .values()
        .filter(|seen| seen.asked > 20 * most(seen))
        .collect();
    let (got, due) = busy.iter().fold((0, 0), |(got, due), seen| {
        (got + seen.admitted, due + most(seen))
    });
    report.row(
        "soak",
        "8 processes, skewed clocks",
        vec![
            ("seconds", seconds as f64),
            ("decisions", decisions as f64),
            ("admitted", admitted as f64),
            ("keys", keys.len() as f64),
            ("keys over", over as f64),
            ("busy keys", busy.len() as f64),
            ("of their quota %", 100.0 * got as f64 / due.max(1) as f64),
        ],
    );
    if over > 0 {
        return Err(format!("{over} keys were admitted more than their quota allows").into());
    }
    if admitted < BURST || busy.is_empty() {
        return Err("no key was ever at its limit: nothing was shown".into());
    }
    Ok(report)
}

fn start(server: &RedisServer, number: usize, hours: i32, seconds: u64) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args([
            "soak-worker",
            &server.url(),
            &number.to_string(),
            &seconds.to_string(),
        ])
        .env("LD_PRELOAD", FAKETIME)
        .env("FAKETIME", format!("{hours:+}h"))
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1")
        .stdout(Stdio::piped())
        .spawn()
}
