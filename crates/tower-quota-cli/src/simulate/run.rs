//! A log through one document, or through two beside each other.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use tower_quota_rules::Rules;

use super::outcome::ReplayOutcome;
use super::peak::Peak;
use super::progress::Progress;
use super::replay::Replay;
use super::request::request;
use super::tally::KeyNames;
use crate::log::{HeaderSource, LineReader, LogFile, Unreadable};

/// A log, and where its lines have headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) headers: &'a [(String, HeaderSource)],
    pub(crate) shows_progress: bool,
}

/// The result of a replay.
pub(crate) struct Simulation {
    /// The documents, the new one first.
    pub(crate) replays: Vec<Replay>,
    pub(crate) lines: Lines,
    /// The requests whose outcomes differ between two documents, by the old and the new outcome.
    pub(crate) differences: BTreeMap<(usize, usize), u64>,
}

/// The lines of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// The requests.
    pub(crate) requests: u64,
    /// The lines that are no requests, by the reason: their form, their time, their request.
    pub(crate) unreadable: [u64; 3],
    /// The requests whose time is before that of the line above.
    pub(crate) out_of_order: u64,
    /// The requests that the log answers with 429: a limit refused them when they were logged.
    pub(crate) refused_in_log: u64,
    /// The times of the first and the last request, in microseconds since 1970.
    pub(crate) span: (u64, u64),
    /// The requests whose times have a fraction of a second.
    pub(crate) exact_times: u64,
    pub(crate) busiest_second: Peak,
    pub(crate) busiest_minute: Peak,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            requests: 0,
            unreadable: [0; 3],
            out_of_order: 0,
            refused_in_log: 0,
            span: (0, 0),
            exact_times: 0,
            busiest_second: Peak::over(Peak::SECOND),
            busiest_minute: Peak::over(60 * Peak::SECOND),
        }
    }
}

/// Replays a log through documents, each of which decides every request by itself.
pub(crate) fn run(
    source: Source<'_>,
    documents: &[&Rules],
    keys: KeyNames,
) -> io::Result<Simulation> {
    let replays = documents
        .iter()
        .map(|rules| Replay::new(rules, keys))
        .collect::<io::Result<Vec<_>>>()?;
    let mut simulation = Simulation {
        replays,
        lines: Lines::default(),
        differences: BTreeMap::new(),
    };
    let mut file = LogFile::open(source.path)?;
    let mut reader = LineReader::new(source.headers.to_vec());
    let progress = Progress::start(&file, source.shows_progress);
    let mut line = Vec::new();
    while file.next_line(&mut line)?.is_continue() {
        simulation.replay(&mut reader, &line);
        progress.follow(&file, simulation.lines.requests);
    }
    Ok(simulation)
}

impl Simulation {
    fn replay(&mut self, reader: &mut LineReader, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let record = match reader.read(line) {
            Ok(record) => record,
            Err(why) => return self.lines.skip(why),
        };
        let Some(first) = request(&record) else {
            return self.lines.skip(Unreadable::Request);
        };
        self.lines.count(record.micros, record.status);
        let mut first = Some(first);
        let mut outcomes = [ReplayOutcome::Uncounted; 2];
        for (replay, outcome) in self.replays.iter_mut().zip(&mut outcomes) {
            // The requests are equal: the second is made only if it is needed.
            let Some(request) = first.take().or_else(|| request(&record)) else {
                continue;
            };
            *outcome = replay.decide(record.micros, request);
        }
        if self.replays.len() == 2 && outcomes[0] != outcomes[1] {
            *self
                .differences
                .entry((outcomes[1] as usize, outcomes[0] as usize))
                .or_default() += 1;
        }
    }
}

impl Lines {
    fn skip(&mut self, why: Unreadable) {
        self.unreadable[why as usize] += 1;
    }

    fn count(&mut self, micros: u64, status: Option<u16>) {
        self.requests += 1;
        let (first, last) = &mut self.span;
        if self.requests == 1 {
            (*first, *last) = (micros, micros);
        }
        self.out_of_order += u64::from(micros < *last);
        *last = micros.max(*last);
        let now = *last;
        self.exact_times += u64::from(!micros.is_multiple_of(1_000_000));
        self.refused_in_log += u64::from(status == Some(429));
        self.busiest_second.count(now);
        self.busiest_minute.count(now);
    }
}
