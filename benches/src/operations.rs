//! What operators wait for: 10,000 blocks, one after the other, and the replay of an access log.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::time::Duration;

use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_dev::RedisServer;
use tower_quota_live::{
    BlockTarget, LiveOptions, LiveRules, NewBlock, NewVersion, RedisRules, RuleStore,
};

use crate::Outcome;
use crate::report::{Cell, Report, Table};
use crate::turns::{now, rest};

const BY_USER: &str = "limits: [{ name: minute, quota: 100/minute, key: header user }]";

const BY_ADDRESS: &str = "limits:\n  \
    - { name: second, quota: 10/second, key: client_ip }\n  \
    - { name: minute, quota: 100/minute, key: client_ip }\n  \
    - { name: everyone, quota: 5000/second, key: none }\n";

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let (count, lines, rounds) = if quick {
        (500, 50_000, 1)
    } else {
        (10_000, 1_000_000, 5)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let columns = ["seconds in all", "slowest ms", "Redis µs of each"];
    let mut blocked = Table::new("10,000 blocks", &columns, 1);
    let figures = runtime.block_on(blocks(count))?;
    blocked.row("two instances", figures.map(|figure| Some(figure.into())));

    let mut replayed = Table::new("a log of a million lines", &["lines/s"], rounds);
    let folder = env::temp_dir().join(format!("tower-quota-bench-{}", process::id()));
    fs::create_dir_all(&folder)?;
    let rates = replays(&folder, lines, rounds);
    fs::remove_dir_all(&folder)?;
    replayed.row("three limits", [Cell::highest(&rates?)]);
    Ok(Report::of([blocked, replayed]))
}

/// Puts blocks on one of two instances until they are in force on the other. Returns the seconds of all blocks, the
/// milliseconds of the slowest block, and the microseconds of Redis for each block.
async fn blocks(count: usize) -> Outcome<[f64; 3]> {
    let server = RedisServer::start();
    let rules = || RedisRules::new(&server.url(), "bench");
    let start = async || -> Outcome<LiveRules> {
        let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
        Ok(LiveRules::start(layer.handle(), rules()?, LiveOptions::new()).await?)
    };
    rules()?
        .put(None, NewVersion::new(BY_USER, "bench"))
        .await?;
    let (one, other) = (start().await?, start().await?);
    let (began, before) = (now(), microseconds_in_commands(&server)?);
    let mut slowest = Duration::ZERO;
    for user in 0..count {
        let (user, begun) = (format!("user {user}"), now());
        let day = NewBlock::block(Duration::from_secs(86_400), "bench");
        one.block(BlockTarget::Text(&user), day).await?;
        slowest = slowest.max(begun.elapsed());
    }
    while other.blocks().len() < count {
        rest(Duration::from_millis(1)).await;
    }
    let took = began.elapsed();
    let in_redis = microseconds_in_commands(&server)? - before;
    Ok([
        took.as_secs_f64(),
        slowest.as_secs_f64() * 1e3,
        in_redis / count as f64,
    ])
}

/// Returns the time of all commands in the one thread of Redis.
fn microseconds_in_commands(server: &RedisServer) -> Outcome<f64> {
    let info = server.command("INFO commandstats")?;
    let mut sum = 0.0;
    for part in info.split(',') {
        if let Some(time) = part.strip_prefix("usec=") {
            sum += time.parse::<f64>()?;
        }
    }
    Ok(sum)
}

/// Replays a log with the command `tower-quota`, which is built next to this program. Returns the lines a second.
fn replays(folder: &Path, lines: u64, rounds: usize) -> Outcome<Vec<f64>> {
    let command = env::current_exe()?.with_file_name("tower-quota");
    if !command.exists() {
        return Err("build the command first: cargo build --release -p tower-quota-cli".into());
    }
    let (rules, log) = (folder.join("rules.yaml"), folder.join("access.log"));
    fs::write(&rules, BY_ADDRESS)?;
    fs::write(&log, access_log(lines)?)?;
    let mut rates = Vec::new();
    for _ in 0..rounds {
        let mut simulate = Command::new(&command);
        simulate.args(["simulate", "--json", "--rules"]).arg(&rules);
        simulate.arg("--log").arg(&log);
        let began = now();
        let output = simulate.output()?;
        let took = began.elapsed();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let read = &report["log"]["requests"];
        if *read != lines {
            return Err(format!("the command read {read} of {lines} lines").into());
        }
        rates.push(lines as f64 / took.as_secs_f64());
    }
    Ok(rates)
}

/// Writes a log of 8,000 clients with 1,000 requests a second.
fn access_log(lines: u64) -> Outcome<String> {
    let mut log = String::new();
    for line in 0..lines {
        let (client, second) = (line * 7_919 % 8_000, line / 1_000);
        let address = format!("10.0.{}.{}", client / 250, client % 250);
        let time = format!("10:{:02}:{:02}", second / 60, second % 60);
        writeln!(
            log,
            "{address} - - [21/Nov/2025:{time} +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"-\""
        )?;
    }
    Ok(log)
}
