//! Draws the requests that each algorithm admits over time, decided on a clock set by hand.

use std::error::Error;
use std::time::Duration;

use tower_quota_core::{Charge, Clock, Key, MemoryStore, Quota, Store};
use tower_quota_testkit::{ManualClock, block_on};

use super::svg::{LINE, MARGIN, STYLE, WIDTH, text};

/// The name of the file in the folder of charts.
pub(super) const FILE: &str = "algorithms.svg";
const TITLE: &str = "The same requests, under 10 units in 10 seconds";
const UNIT: &str =
    "each line is a request that passes, at the time it passes; each dot is one that is refused";

const PERIOD: Duration = Duration::from_secs(10);
const SECONDS: u32 = 30;
/// The requests: start and end of each stretch and the time between requests, in milliseconds.
///
/// Each stretch begins shortly after a full second.
const STRETCHES: [(u64, u64, u64); 3] = [
    (0, 8_000, 500),
    (17_000, 24_000, 200),
    (24_000, 30_000, 2_000),
];
const FIRST: u64 = 100;

/// The left end of the time axis, to the right of the names.
const LEFT: f64 = 210.0;
/// The right end, to the left of the sums.
const RIGHT: f64 = WIDTH - 200.0;
const ROW: f64 = 36.0;

/// The requests that one quota passes and refuses.
struct Row {
    name: &'static str,
    /// The times at which requests pass, since the start.
    passed: Vec<Duration>,
    refused: Vec<Duration>,
}

/// Decides the same requests under each quota.
fn rows() -> Result<Vec<Row>, Box<dyn Error>> {
    let quota = Quota::new(10, PERIOD);
    [
        ("fixed window", quota.fixed_window()),
        ("sliding window", quota.sliding_window()),
        ("sliding log", quota.sliding_log()),
        ("token bucket, GCRA", quota),
        ("token bucket, burst of 3", quota.burst(3)),
        ("leaky bucket, queue of 5", quota.leaky_bucket().queue(5)),
    ]
    .into_iter()
    .map(|(name, quota)| row(name, quota))
    .collect()
}

fn row(name: &'static str, quota: Quota) -> Result<Row, Box<dyn Error>> {
    // Starts at midnight UTC, where windows begin.
    let clock = ManualClock::default();
    let start = clock.now();
    let store = MemoryStore::with_clock(8, clock.clone());
    let mut row = Row {
        name,
        passed: Vec::new(),
        refused: Vec::new(),
    };
    for at in requests() {
        clock.set(start + at);
        let decision = block_on(store.check(&[Charge::new("row", &quota, &Key::EVERYONE)]))?;
        let (list, at) = if decision.is_allowed() {
            (&mut row.passed, at + decision.wait())
        } else {
            (&mut row.refused, at)
        };
        list.push(at);
    }
    Ok(row)
}

/// Returns the times at which requests arrive, since the start.
fn requests() -> impl Iterator<Item = Duration> {
    let instants = STRETCHES
        .into_iter()
        .flat_map(|(from, to, apart)| (from + FIRST..to).step_by(apart as usize));
    instants.map(Duration::from_millis)
}

/// Returns the most requests that pass within one period, wherever it begins.
fn most_in_a_period(passed: &[Duration]) -> usize {
    let within = |&first: &Duration| {
        passed
            .iter()
            .filter(|&&at| first <= at && at < first + PERIOD)
            .count()
    };
    passed.iter().map(within).max().unwrap_or_default()
}

/// Draws all rows below each other.
pub(super) fn drawn() -> Result<String, Box<dyn Error>> {
    let rows = rows()?;
    let top = MARGIN + 3.0 * LINE;
    let foot = top + ROW * (rows.len() + 1) as f64;
    let height = foot + 2.0 * LINE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{TITLE}\">\n\
         {STYLE}<style>.pass{{stroke:#0072b2;stroke-width:2}}.refuse{{stroke:#d55e00;stroke-width:3;stroke-linecap:round}}\
         .ask{{stroke:#8c959f;stroke-width:2}}</style>\n\
         <rect class=\"background\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n",
        WIDTH - 1.0,
        height - 1.0
    );
    svg += &text("title", MARGIN, MARGIN + 10.0, TITLE);
    svg += &text("unit", MARGIN, MARGIN + 10.0 + LINE, UNIT);
    for second in (0..=SECONDS).step_by(5) {
        let x = x_of(Duration::from_secs(second.into()));
        svg += &format!(
            "<line class=\"line\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{foot}\"/>\n"
        );
        svg += &text("group", x, foot + LINE, &format!("{second} s"));
    }
    let asked: Vec<Duration> = requests().collect();
    svg += &text("name", MARGIN, top + 22.0, "all requests");
    svg += &lines("ask", top, &asked);
    svg += &text("sum", RIGHT + 16.0, top + 22.0, &format!("{}", asked.len()));
    for (row, number) in rows.iter().zip(1..) {
        let y = top + ROW * f64::from(number);
        svg += &text("name", MARGIN, y + 22.0, row.name);
        svg += &dots(y, &row.refused);
        svg += &lines("pass", y, &row.passed);
        let sum = format!(
            "{} pass, at most {} in 10 s",
            row.passed.len(),
            most_in_a_period(&row.passed)
        );
        svg += &text("sum", RIGHT + 16.0, y + 22.0, &sum);
    }
    Ok(svg + "</svg>\n")
}

fn x_of(at: Duration) -> f64 {
    LEFT + (RIGHT - LEFT) * at.as_secs_f64() / f64::from(SECONDS)
}

fn lines(class: &str, y: f64, times: &[Duration]) -> String {
    path(class, times, |x| format!("M{x:.1} {}v18", y + 9.0))
}

fn dots(y: f64, times: &[Duration]) -> String {
    path("refuse", times, |x| format!("M{x:.1} {}h0", y + 18.0))
}

fn path(class: &str, times: &[Duration], mark: impl Fn(f64) -> String) -> String {
    let marks: String = times.iter().map(|at| mark(x_of(*at))).collect();
    format!("<path class=\"{class}\" d=\"{marks}\"/>\n")
}

/// Returns a drawing as the target of a link that is called `drawing`: rustdoc has no files beside its pages.
pub(super) fn as_link(drawing: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'%' | b'<' | b'>' | b'"' | b'#' | b'(' | b')' | b'{' | b'}' | 0..=b' ' => {
            format!("%{byte:02X}")
        }
        _ => char::from(byte).to_string(),
    };
    format!(
        "[drawing]: data:image/svg+xml,{}\n",
        drawing.bytes().map(escaped).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::{most_in_a_period, row, rows};
    use tower_quota_core::Quota;

    #[test]
    fn rows_stay_within_algorithm_bounds() {
        let of = |name: &str| {
            rows()
                .unwrap()
                .into_iter()
                .find(|row| row.name.starts_with(name))
                .unwrap()
        };
        assert_eq!(most_in_a_period(&of("sliding log").passed), 10);
        // Up to twice the units across a border.
        assert_eq!(most_in_a_period(&of("fixed window").passed), 20);
        // A full bucket, and at most ten units that refill meanwhile.
        assert!((15..=20).contains(&most_in_a_period(&of("token bucket, GCRA").passed)));
        assert!(most_in_a_period(&of("token bucket, burst of 3").passed) <= 13);
        let turns = of("leaky bucket").passed;
        assert!(
            turns
                .windows(2)
                .all(|pair| (pair[1] - pair[0]).as_millis() >= 1_000),
            "{turns:?}"
        );
    }

    #[test]
    fn gcra_row_equals_token_bucket_row() {
        let quota = Quota::new(10, super::PERIOD);
        assert_eq!(
            row("", quota.gcra()).unwrap().passed,
            row("", quota).unwrap().passed
        );
    }
}
