//! The two drawings of the pages: what six algorithms admit, decided on a clock set by hand, and an outage as measured.
//! They are read at 400 pixels of width too, so letters are large.

use std::fmt::Write as _;
use std::time::Duration;

use indexmap::IndexMap;
use tower_quota_core::{Charge, Clock, Key, MemoryStore, Quota, Store};
use tower_quota_testkit::{ManualClock, block_on};

use crate::Outcome;
use crate::outage::{POINTS, SECONDS};

const BLUE: &str = "#0072B2";
const RED: &str = "#D55E00";
const GREY: &str = "#6E7781";

/// An SVG file of 720 pixels of width.
struct Drawing {
    svg: String,
}

impl Drawing {
    /// Starts with a title and a line below it. The background is light, so that letters are readable on a dark page.
    fn new(height: i32, title: &str, line: &str) -> Self {
        let mut drawing = Self {
            svg: format!(
                "<svg width=\"720\" height=\"{height}\" viewBox=\"0 0 720 {height}\" \
                 xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\">\n\
                 <rect width=\"720\" height=\"{height}\" fill=\"#FFFFFF\"/>\n"
            ),
        };
        drawing.text(14, 28, "19\" font-weight=\"bold", title);
        drawing.text(14, 56, "16", line);
        drawing
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        _ = writeln!(self.svg, "{element}");
    }

    /// Writes text of a size, whose baseline begins here.
    fn text(&mut self, x: i32, y: i32, size: &str, text: &str) {
        self.add(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"#1F2328\">{text}</text>"
        ));
    }

    fn line(&mut self, points: &[(i32, i32)], colour: &str, width: u32) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let points = points.join(" ");
        self.add(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        ));
    }

    fn dot(&mut self, x: i32, y: i32, radius: u32, colour: &str) {
        self.add(format_args!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" fill=\"{colour}\"/>"
        ));
    }

    fn end(self) -> String {
        self.svg + "</svg>\n"
    }
}

const PERIOD: Duration = Duration::from_secs(10);
/// The requests: start and end of each stretch and the time between requests, in milliseconds.
///
/// Each stretch begins shortly after a full second.
const STRETCHES: [(u64, u64, usize); 3] = [
    (0, 8_000, 500),
    (17_000, 24_000, 200),
    (24_000, 30_000, 2_000),
];
const FIRST: u64 = 100;

/// Returns the times at which requests arrive, since the start.
fn requests() -> impl Iterator<Item = Duration> {
    let instants = STRETCHES
        .into_iter()
        .flat_map(|(from, to, apart)| (from + FIRST..to).step_by(apart));
    instants.map(Duration::from_millis)
}

/// Returns the times at which requests pass under a quota, and the times of refused requests.
fn decided(quota: Quota) -> Outcome<(Vec<Duration>, Vec<Duration>)> {
    // Starts at midnight UTC, where windows begin.
    let clock = ManualClock::default();
    let start = clock.now();
    let store = MemoryStore::with_clock(8, clock.clone());
    let (mut passed, mut refused) = (Vec::new(), Vec::new());
    for at in requests() {
        clock.set(start + at);
        let decision = block_on(store.check(&[Charge::new("row", &quota, &Key::EVERYONE)]))?;
        if decision.is_allowed() {
            passed.push(at + decision.wait());
        } else {
            refused.push(at);
        }
    }
    Ok((passed, refused))
}

/// Returns the most requests that pass within one period, wherever it begins.
fn most_in_a_period(passed: &[Duration]) -> usize {
    let within = |&first: &Duration| {
        let from_first = passed.iter().filter(|&&at| first <= at);
        from_first.filter(|&&at| at < first + PERIOD).count()
    };
    passed.iter().map(within).max().unwrap_or_default()
}

fn quotas() -> [(&'static str, Quota); 6] {
    let quota = Quota::new(10, PERIOD);
    [
        ("fixed window", quota.fixed_window()),
        ("sliding window", quota.sliding_window()),
        ("sliding log", quota.sliding_log()),
        ("token bucket (default)", quota),
        ("token bucket, burst of 3", quota.burst(3)),
        ("leaky bucket, queue of 5", quota.leaky_bucket().queue(5)),
    ]
}

/// Draws the requests that each algorithm admits, in rows below each other.
pub(crate) fn algorithms() -> Outcome<String> {
    const BOTTOM: i32 = 420;
    let x = |at: Duration| 212 + (396.0 * at.as_secs_f64() / 30.0) as i32;
    let line = "a line: a request passes, at the time it passes; a dot: a refusal";
    let title = "The same requests under 10 units in 10 seconds";
    let mut drawing = Drawing::new(BOTTOM + 40, title, line);
    for second in (0..=30).step_by(5) {
        let at = x(Duration::from_secs(second));
        drawing.line(&[(at, 106), (at, BOTTOM)], "#D0D7DE", 1);
        drawing.text(at - 10, BOTTOM + 20, "14", &format!("{second} s"));
    }
    for (phase, second) in [("steady", 2), ("pause", 10), ("burst", 19), ("slow", 25)] {
        drawing.text(x(Duration::from_secs(second)), 100, "14", phase);
    }
    drawing.text(618, 100, "14", "most in 10 s");
    let all = ("all requests", requests().collect(), Vec::new(), GREY);
    let mut rows: Vec<(_, Vec<_>, Vec<_>, _)> = vec![all];
    for (name, quota) in quotas() {
        let (passed, refused) = decided(quota)?;
        rows.push((name, passed, refused, BLUE));
    }
    for (number, (name, passed, refused, colour)) in (0..).zip(&rows) {
        let y = 134 + 44 * number;
        drawing.text(14, y + 5, "15", name);
        for at in refused {
            drawing.dot(x(*at), y, 2, RED);
        }
        for at in passed {
            drawing.line(&[(x(*at), y - 11), (x(*at), y + 11)], colour, 2);
        }
        if number > 0 {
            drawing.text(648, y + 5, "15", &most_in_a_period(passed).to_string());
        }
    }
    Ok(drawing.end())
}

/// Draws what passes before, in and after an outage of Redis, for each choice of a limit.
pub(crate) fn outage(timelines: &IndexMap<String, Vec<f64>>) -> String {
    const BOTTOM: i32 = 400;
    let [before, during, after] = SECONDS;
    let x = |second: f64| 76 + (620.0 * (second + before) / (before + during + after)) as i32;
    let y = |rate: f64| BOTTOM - (rate * 290.0 / 5_000.0) as i32;
    let title = "While Redis is away: 4,000 requests/s, 1,000 within the quota";
    let mut drawing = Drawing::new(
        440,
        title,
        "admitted requests a second, by the choice of the limit",
    );
    let (left, width) = (x(0.0), x(during) - x(0.0));
    drawing.add(format_args!(
        "<rect x=\"{left}\" y=\"110\" width=\"{width}\" height=\"290\" fill=\"#EAEEF2\"/>"
    ));
    drawing.text(left + width / 2 - 50, 128, "15", "Redis is away");
    for rate in [0, 1_000, 2_000, 3_000, 4_000, 5_000] {
        drawing.line(
            &[
                (x(-before), y(f64::from(rate))),
                (x(during + after), y(f64::from(rate))),
            ],
            "#D0D7DE",
            1,
        );
        drawing.text(24, y(f64::from(rate)) + 5, "15", &rate.to_string());
    }
    for second in (-2..=8).step_by(2) {
        drawing.text(
            x(f64::from(second)) - 10,
            BOTTOM + 24,
            "15",
            &format!("{second} s"),
        );
    }
    let choices = [("allow", RED, 4), ("local", BLUE, 4), ("refuse", GREY, 2)];
    for (number, (name, colour, width)) in (0..).zip(choices) {
        drawing.dot(21 + 100 * number, 82, 7, colour);
        drawing.text(34 + 100 * number, 88, "16", name);
        let timeline = timelines.get(name).into_iter().flatten();
        // A point lies in the middle of its span.
        let second = |point: u32| (f64::from(point) + 0.5) / POINTS - before;
        let points = (0..)
            .zip(timeline)
            .map(|(point, rate)| (x(second(point)), y(*rate)));
        drawing.line(&points.collect::<Vec<_>>(), colour, width);
    }
    drawing.end()
}

#[cfg(test)]
mod tests {
    use tower_quota_core::Quota;

    use super::{PERIOD, decided, most_in_a_period, quotas};

    #[test]
    fn rows_stay_within_algorithm_bounds() {
        let of = |name: &str| {
            let row = quotas().into_iter().find(|row| row.0.starts_with(name));
            decided(row.unwrap().1).unwrap().0
        };
        assert_eq!(most_in_a_period(&of("sliding log")), 10);
        // Up to twice the units across a border.
        assert_eq!(most_in_a_period(&of("fixed window")), 20);
        // A full bucket, and at most ten units that refill meanwhile.
        assert!((15..=20).contains(&most_in_a_period(&of("token bucket (default)"))));
        assert!(most_in_a_period(&of("token bucket, burst of 3")) <= 13);
        let turns = of("leaky bucket");
        let far_apart = |pair: &[std::time::Duration]| (pair[1] - pair[0]).as_millis() >= 1_000;
        assert!(turns.windows(2).all(far_apart), "{turns:?}");
    }

    #[test]
    fn gcra_passes_what_token_bucket_passes() {
        let quota = Quota::new(10, PERIOD);
        assert_eq!(decided(quota.gcra()).unwrap(), decided(quota).unwrap());
    }
}
