//! `make-log`: a log that a seed repeats, to try a simulation with.

use core::fmt::Write as _;
use std::io::{BufWriter, Write};

use clap::{Args, ValueEnum};
use fastrand::Rng;
use jiff::Timestamp;

use crate::failure::{Ended, Failure, Found};

#[derive(Args, Debug)]
pub(crate) struct MakeLogArguments {
    /// The number of lines.
    lines: u64,
    /// The seed. The same seed makes the same log.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of clients. A few of them send most requests, as everywhere.
    #[arg(long, default_value_t = 10_000)]
    clients: u32,
    /// The average number of requests per second.
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// The format of the lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Combined)]
    form: LogFormat,
}

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Combined,
    Json,
}

/// The first time, in microseconds since 1970: 2025-11-21 00:00:00 UTC.
const START_MICROS: u64 = 1_763_683_200_000_000;

const TARGETS: [(&str, &str, u16); 8] = [
    ("GET", "/", 200),
    ("GET", "/v1/items?page=2", 200),
    ("GET", "/v1/items/17", 200),
    ("GET", "/v1/search?q=shoes", 200),
    ("POST", "/v1/orders", 201),
    ("POST", "/login", 401),
    ("GET", "/static/app.js", 304),
    ("GET", "/healthz", 200),
];

pub(crate) fn run(arguments: &MakeLogArguments) -> Ended {
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let mut random = Rng::with_seed(arguments.seed);
    let mut micros = START_MICROS;
    let mut line = String::new();
    for number in 0..arguments.lines {
        micros += gap(&mut random, micros, arguments.rate);
        line.clear();
        write_line(&mut line, arguments, &mut random, micros, number);
        match out.write_all(line.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Ok(Found::Nothing);
            }
            Err(error) => return Err(Failure::Usage(error.to_string())),
            Ok(()) => {}
        }
    }
    match out.flush() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Usage(error.to_string()))
        }
        _ => Ok(Found::Nothing),
    }
}

/// Returns the time to the next request: on average that of the rate, less by day than by night.
fn gap(random: &mut Rng, micros: u64, rate: u32) -> u64 {
    let hour = micros / 3_600_000_000 % 24;
    let percent = if (8..20).contains(&hour) { 70 } else { 130 };
    random.u64(0..=2 * 1_000_000 / u64::from(rate.max(1))) * percent / 100
}

/// Returns a client: of two random numbers the smaller one twice, so that the first clients send most.
fn client(random: &mut Rng, clients: u32) -> u32 {
    let most = clients.max(1);
    let smaller = |random: &mut Rng, most: u32| random.u32(0..most).min(random.u32(0..most));
    let bound = smaller(random, most) + 1;
    smaller(random, bound)
}

fn write_line(
    line: &mut String,
    arguments: &MakeLogArguments,
    random: &mut Rng,
    micros: u64,
    number: u64,
) {
    // One client attacks for a tenth of the log.
    let attacks = (number * 10 / arguments.lines.max(1)) == 6 && random.u8(0..4) == 0;
    let client = if attacks {
        0
    } else {
        client(random, arguments.clients)
    };
    let (method, target, status) = if attacks {
        TARGETS[5]
    } else {
        TARGETS[random.usize(0..TARGETS.len())]
    };
    let bytes = random.u32(200..20_000);
    let [_, b, c, d] = client.to_be_bytes();
    let timestamp = i64::try_from(micros)
        .ok()
        .and_then(|micros| Timestamp::from_microsecond(micros).ok());
    let timestamp = timestamp.unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = match arguments.form {
        LogFormat::Combined => writeln!(
            line,
            "10.{b}.{c}.{d} - - [{}] \"{method} {target} HTTP/1.1\" {status} {bytes} \"-\" \"agent/1.0\"",
            timestamp.strftime("%d/%b/%Y:%H:%M:%S +0000")
        ),
        LogFormat::Json => writeln!(
            line,
            "{{\"time\":\"{timestamp}\",\"remote_addr\":\"10.{b}.{c}.{d}\",\"method\":\"{method}\",\"path\":\"{target}\",\
             \"status\":{status},\"bytes\":{bytes},\"headers\":{{\"x-api-key\":\"sk_{}_{client}\"}}}}",
            if client % 10 == 0 { "prod" } else { "free" }
        ),
    };
}
