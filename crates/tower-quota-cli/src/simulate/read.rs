use std::io::{self, IsTerminal};
use std::path::Path;

use http::Request;
use serde::Serialize;

use super::peak::Peak;
use crate::log::{HeaderSource, LineReader, LogFile, LoggedResponse, time};
use crate::output::grouped;

#[derive(Clone, Copy, Debug)]
pub(super) struct LogSource<'a> {
    pub(super) path: &'a Path,
    pub(super) headers: &'a [HeaderSource],
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Lines {
    pub(super) requests: u64,
    pub(super) unreadable_lines: u64,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) busiest_second: Peak,
    pub(super) busiest_minute: Peak,
    #[serde(skip)]
    pub(super) unreadable: [u64; 3],
    /// The requests with an earlier time than the line before.
    #[serde(skip)]
    pub(super) out_of_order: u64,
    /// The requests that were answered 429 when the log was written.
    #[serde(skip)]
    pub(super) refused_in_log: u64,
    /// The requests with fractions of a second in their time.
    #[serde(skip)]
    pub(super) exact_times: u64,
}

const LINES: u64 = 1 << 17;

/// Reads a log. Calls `each` with a time in microseconds since 1970 and a request. Times never go
/// backwards.
pub(super) fn read(
    source: LogSource<'_>,
    mut each: impl FnMut(u64, Request<LoggedResponse>),
) -> io::Result<Lines> {
    let mut file = LogFile::open(source.path)?;
    let mut reader = LineReader::new(source.headers);
    let mut lines = Lines {
        busiest_minute: Peak::over(60),
        ..Lines::default()
    };
    let shows_progress = io::stderr().is_terminal();
    let mut now = 0;
    let mut line = Vec::new();
    while file.next_line(&mut line)? {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let (micros, request) = match reader.read(&line) {
            Ok(request) => request,
            Err(why) => {
                lines.unreadable[why as usize] += 1;
                lines.unreadable_lines += 1;
                continue;
            }
        };
        if lines.requests == 0 {
            lines.from = time::text(micros);
        }
        lines.requests += 1;
        lines.out_of_order += u64::from(micros < now);
        lines.exact_times += u64::from(!micros.is_multiple_of(1_000_000));
        lines.refused_in_log += u64::from(request.body().status == Some(429));
        now = micros.max(now);
        lines.busiest_second.count(now);
        lines.busiest_minute.count(now);
        each(now, request);
        if shows_progress && lines.requests.is_multiple_of(LINES) {
            eprint!("\r{} requests ", grouped(lines.requests));
        }
    }
    if shows_progress && lines.requests >= LINES {
        eprintln!();
    }
    lines.to = time::text(now);
    Ok(lines)
}
