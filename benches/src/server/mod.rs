//! The built `tower-quota-server`, next to the plainest gRPC service with the same messages.
//!
//! Each server runs alone on the first core. The load, and Redis, run on the second core. With so few cores, the honest figure
//! is the CPU that a server uses for a call. A rate is what one core answers.

mod calls;
mod connection;
mod open_loop;
#[cfg(test)]
mod plain;
mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tower_quota_dev::RedisServer;

use self::calls::{Calls, Users};
use self::connection::Protocol;
use self::open_loop::{Figures, IN_FLIGHT, OpenLoop, PATIENCE};
use self::process::{Cores, Server, built_program, free_port, redis_cpu};
use crate::Outcome;
use crate::report::{Cell, Report, Table};
use crate::turns::{Round, in_turns, now};

/// Callers of which each is busy.
const BUSY: Users = Users::Returning(64);
/// More requests a second than a core answers.
const FLOOD: f64 = 250_000.0;
/// The longest 99th percentile of a rate that counts as sustained, in microseconds.
const BOUND: f64 = 2_000.0;
/// Where `scripts/gateways` installs Envoy.
const ENVOY: &str = "target/tools/envoy-1.40.0/envoy/_bin/envoy";

const PLAIN: &str = "plain gRPC";
const MEMORY: &str = "memory";
const LEASED: &str = "leased Redis";
const REDIS: &str = "Redis";
const CONTENDERS: [&str; 4] = [MEMORY, LEASED, REDIS, PLAIN];

/// The servers of a suite, which start anew for each measurement.
struct Bench {
    program: PathBuf,
    limits: TempDir,
    span: Duration,
    rounds: usize,
}

/// A contender with what it needs.
struct Running {
    server: Server,
    redis: Option<RedisServer>,
}

pub(crate) fn run(quick: bool, envoy: Option<&Path>) -> Outcome<Report> {
    process::move_to_second_core()?;
    let limits = tempfile::tempdir()?;
    fs::write(limits.path().join("limits.yaml"), calls::limits(0))?;
    let bench = Bench {
        program: built_program("tower-quota-server")?,
        limits,
        span: Duration::from_millis(if quick { 400 } else { 1_500 }),
        rounds: if quick { 1 } else { 3 },
    };
    let mut tables = Vec::new();
    for descriptors in [1, 4, 10] {
        tables.push(bench.calls(descriptors)?);
    }
    let memory = tables[0].figure(MEMORY, "calls/s").unwrap_or_default();
    tables.push(bench.traffic()?);
    tables.push(bench.overload(memory)?);
    let default = Path::new(ENVOY);
    match envoy.or_else(|| default.exists().then_some(default)) {
        Some(envoy) => tables.push(bench.through_envoy(envoy)?),
        None => eprintln!("without --envoy FILE, the figures have no Envoy in front"),
    }
    tables.push(bench.start(if quick { 2 } else { 20 })?);
    Ok(Report::of(tables))
}

impl Bench {
    /// Measures calls of busy callers with so many descriptors.
    fn calls(&self, descriptors: usize) -> Outcome<Table> {
        let head = match descriptors {
            1 => "calls with one descriptor".to_owned(),
            _ => format!("calls with {descriptors} descriptors"),
        };
        let columns = [
            "calls a CPU second",
            "calls/s",
            "calls/s, p99 2 ms",
            "p50 µs",
            "p99 µs",
            "p99.9 µs",
            "server µs",
            "Redis µs",
        ];
        let calls = Calls::named("k", descriptors, BUSY);
        let mut table = Table::new(&head, &columns, self.rounds);
        let round = |contender: &&'static str| -> Round<'_, (Figures, Figures)> {
            let (contender, calls) = (*contender, &calls);
            Box::new(move || {
                let running = self.start_contender(contender)?;
                let most = self.load(&running, calls, FLOOD, PATIENCE)?;
                let half = self.load(&running, calls, most.rate / 2.0, PATIENCE)?;
                Ok((most, half))
            })
        };
        let all = in_turns(self.rounds, CONTENDERS.iter().map(round).collect())?;
        for (contender, rounds) in CONTENDERS.iter().zip(all) {
            let most = |figure: fn(&Figures) -> f64| {
                let figures: Vec<f64> = rounds.iter().map(|(most, _)| figure(most)).collect();
                Cell::highest(&figures)
            };
            let half = |figure: fn(&Figures) -> f64| {
                let figures: Vec<f64> = rounds.iter().map(|(_, half)| figure(half)).collect();
                Cell::lowest(&figures)
            };
            let rate = most(|figures| figures.rate);
            let sustained = self.sustained(contender, &calls, rate.map_or(0.0, Cell::best))?;
            let redis = match *contender {
                MEMORY | PLAIN => None,
                _ => half(|figures| figures.cpu[1]),
            };
            let cells = [
                most(|figures| 1e6 / figures.cpu[0]),
                rate,
                Some(sustained.into()),
                half(|figures| figures.p50),
                half(|figures| figures.p99),
                half(|figures| figures.p999),
                half(|figures| figures.cpu[0]),
                redis,
            ];
            table.row(*contender, cells);
        }
        Ok(table)
    }

    /// Returns the highest tenth of a rate at which 99 of 100 answers take at most two milliseconds.
    fn sustained(&self, contender: &str, calls: &Calls, rate: f64) -> Outcome<f64> {
        let running = self.start_contender(contender)?;
        for tenths in (1..10).rev() {
            let rate = rate * f64::from(tenths) / 10.0;
            let figures = self.load(&running, calls, rate, PATIENCE)?;
            if figures.p99 <= BOUND {
                return Ok(figures.rate.round());
            }
        }
        Ok(0.0)
    }

    /// Measures calls with four descriptors of other callers.
    fn traffic(&self) -> Outcome<Table> {
        let returning = Users::Returning(10_000);
        let cases = [
            ("10,000 returning clients", Calls::named("k", 4, returning)),
            ("first calls", Calls::named("k", 4, Users::New)),
            ("token buckets", Calls::named("t", 4, BUSY)),
            ("refusals", Calls::named("r", 4, BUSY)),
            ("mixed", Calls::mixed(Users::Skewed(100_000))),
        ];
        let head = "calls a CPU second, four descriptors";
        let mut table = Table::new(head, &CONTENDERS, self.rounds).next_to(PLAIN);
        for (name, calls) in &cases {
            let round = |contender: &&'static str| -> Round<'_, f64> {
                let contender = *contender;
                Box::new(move || {
                    let running = self.start_contender(contender)?;
                    let figures = self.load(&running, calls, FLOOD, PATIENCE)?;
                    Ok(1e6 / figures.cpu[0])
                })
            };
            let all = in_turns(self.rounds, CONTENDERS.iter().map(round).collect())?;
            table.row(*name, all.iter().map(|rounds| Cell::highest(rounds)));
        }
        Ok(table)
    }

    /// Sends eight times the calls that a core answers in memory.
    fn overload(&self, capacity: f64) -> Outcome<Table> {
        let columns = ["in 20 ms/s", "late %", "server µs"];
        let head = "eight times the capacity, one descriptor";
        let mut table = Table::new(head, &columns, self.rounds);
        let calls = Calls::named("k", 1, BUSY);
        let round = |contender: &&'static str| -> Round<'_, Figures> {
            let (contender, calls) = (*contender, &calls);
            Box::new(move || {
                let running = self.start_contender(contender)?;
                self.load(&running, calls, capacity * 8.0, Duration::ZERO)
            })
        };
        let all = in_turns(self.rounds, CONTENDERS.iter().map(round).collect())?;
        for (contender, rounds) in CONTENDERS.iter().zip(all) {
            let of =
                |figure: fn(&Figures) -> f64| -> Vec<f64> { rounds.iter().map(figure).collect() };
            let cells = [
                Cell::highest(&of(|figures| figures.in_time)),
                Cell::lowest(&of(|figures| figures.late * 100.0)),
                Cell::lowest(&of(|figures| figures.cpu[0])),
            ];
            table.row(*contender, cells);
        }
        Ok(table)
    }

    /// Sends requests through Envoy, on the first core, with the server on the second core.
    fn through_envoy(&self, envoy: &Path) -> Outcome<Table> {
        const FREE: &str = "without the filter";
        let columns = [
            "requests/s",
            "p50 µs",
            "p99 µs",
            "Envoy µs",
            "server µs",
            "Redis µs",
        ];
        let mut table = Table::new("through Envoy 1.40", &columns, self.rounds);
        let cases = [FREE, MEMORY, LEASED, REDIS];
        let round = |case: &&'static str| -> Round<'_, (Figures, Figures)> {
            let case = *case;
            Box::new(move || {
                let (limited, free, service) = (free_port()?, free_port()?, free_port()?);
                let behind = match case {
                    FREE => MEMORY,
                    contender => contender,
                };
                let behind = self.start_contender_on(Cores::Second, behind)?;
                let config = include_str!("envoy.yaml")
                    .replace("port_value: LIMITED", &format!("port_value: {limited}"))
                    .replace("port_value: FREE", &format!("port_value: {free}"))
                    .replace("port_value: SERVICE", &format!("port_value: {service}"))
                    .replace(
                        "port_value: LIMITS",
                        &format!("port_value: {}", behind.server.port),
                    );
                let file = self.limits.path().with_extension("envoy.yaml");
                fs::write(&file, config)?;
                let mut command = Cores::First.command(envoy);
                command.arg("-c").arg(&file);
                command.args([
                    "--concurrency",
                    "1",
                    "--log-level",
                    "error",
                    "--use-dynamic-base-id",
                ]);
                let port = if case == FREE { free } else { limited };
                let front =
                    Server::start(command, port)?.until_ready(Protocol::Http, b"u00000000")?;
                let load = |rate, in_flight| {
                    let (mut draws, mut sent) = (crate::traffic::Draws::new(1), 0);
                    let load = OpenLoop {
                        port,
                        protocol: Protocol::Http,
                        rate,
                        span: self.span,
                        in_flight,
                        wait: PATIENCE,
                        meters: vec![
                            Box::new(|| front.cpu()),
                            Box::new(|| behind.server.cpu()),
                            Box::new(|| behind.redis_cpu()),
                        ],
                    };
                    load.run(|bytes| {
                        bytes.extend_from_slice(b"u00000000");
                        calls::write_digits(&mut bytes[1..], BUSY.draw(&mut draws, sent));
                        sent += 1;
                    })
                };
                let most = load(FLOOD, IN_FLIGHT / 4)?;
                let half = load(most.rate / 2.0, IN_FLIGHT / 4)?;
                fs::remove_file(file)?;
                Ok((most, half))
            })
        };
        let all = in_turns(self.rounds, cases.iter().map(round).collect())?;
        for (case, rounds) in cases.iter().zip(all) {
            let half = |figure: fn(&Figures) -> f64| {
                let figures: Vec<f64> = rounds.iter().map(|(_, half)| figure(half)).collect();
                Cell::lowest(&figures)
            };
            let rates: Vec<f64> = rounds.iter().map(|(most, _)| most.rate).collect();
            let admitted = rounds.iter().map(|(_, half)| half.admitted);
            let admitted = admitted.fold(1.0, f64::min);
            if admitted < 0.99 {
                eprintln!("{case}: Envoy admitted {admitted} of the requests");
            }
            let cells = [
                Cell::highest(&rates),
                half(|figures| figures.p50),
                half(|figures| figures.p99),
                half(|figures| figures.cpu[0]),
                half(|figures| figures.cpu[1]).filter(|_| *case != FREE),
                half(|figures| figures.cpu[2]).filter(|_| matches!(*case, LEASED | REDIS)),
            ];
            table.row(*case, cells);
        }
        Ok(table)
    }

    /// Measures the time from the start of the process to the first decision.
    fn start(&self, rounds: usize) -> Outcome<Table> {
        let mut table = Table::new(
            "ms from the start to the first decision",
            &["memory"],
            rounds,
        );
        for (name, more) in [("34 descriptors", 0), ("10,034 descriptors", 10_000)] {
            let limits = tempfile::tempdir()?;
            fs::write(limits.path().join("limits.yaml"), calls::limits(more))?;
            let mut times = Vec::new();
            for _ in 0..rounds {
                let began = now();
                let port = free_port()?;
                let command = self.server(Cores::All, limits.path(), port);
                ready(Server::start(command, port)?)?;
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
            table.row(name, [Cell::lowest(&times)]);
        }
        Ok(table)
    }

    /// Returns the command of a server that counts in memory.
    fn server(&self, cores: Cores, limits: &Path, port: u16) -> Command {
        let mut command = cores.command(&self.program);
        command.arg("--envoy").arg(limits);
        command.args(["--grpc", &format!("127.0.0.1:{port}")]);
        command.args(["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.env("LOG_LEVEL", "error");
        command
    }

    fn load(
        &self,
        running: &Running,
        calls: &Calls,
        rate: f64,
        wait: Duration,
    ) -> Outcome<Figures> {
        let load = OpenLoop {
            port: running.server.port,
            protocol: Protocol::Grpc,
            rate,
            span: self.span,
            in_flight: IN_FLIGHT,
            wait,
            meters: vec![
                Box::new(|| running.server.cpu()),
                Box::new(|| running.redis_cpu()),
            ],
        };
        load.run(calls.writer())
    }

    fn start_contender(&self, contender: &str) -> Outcome<Running> {
        self.start_contender_on(Cores::First, contender)
    }

    fn start_contender_on(&self, cores: Cores, contender: &str) -> Outcome<Running> {
        let port = free_port()?;
        if contender == PLAIN {
            let mut command = cores.command(&built_program("plain-grpc")?);
            command.arg(port.to_string());
            let server = ready(Server::start(command, port)?)?;
            return Ok(Running {
                server,
                redis: None,
            });
        }
        let redis = (contender != MEMORY).then(RedisServer::start);
        let mut command = self.server(cores, self.limits.path(), port);
        if let Some(redis) = &redis {
            command.args(["--redis", &redis.url()]);
        }
        if contender == LEASED {
            command.arg("--lease");
        }
        let server = ready(Server::start(command, port)?)?;
        Ok(Running { server, redis })
    }
}

impl Running {
    fn redis_cpu(&self) -> f64 {
        self.redis.as_ref().map_or(0.0, redis_cpu)
    }
}

/// Waits until a server decides.
fn ready(server: Server) -> Outcome<Server> {
    let mut call = Vec::new();
    Calls::named("k", 1, Users::Returning(1)).writer()(&mut call);
    server.until_ready(Protocol::Grpc, &call)
}
