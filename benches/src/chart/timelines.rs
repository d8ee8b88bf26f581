//! Charts over time: the algorithms and a lease, decided on a clock set by hand, and an outage as it was measured.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::prelude::ChartBuilder;
use plotters::series::LineSeries;
use plotters::style::text_anchor::VPos;
use plotters::style::{Color, RGBColor};
use tower_quota_core::{Charge, Clock, Key, MemoryStore, Name, Quota, Store};
use tower_quota_dev::simulation::{self, Network, VirtualClock};
use tower_quota_lease::{LeaseOptions, Leased};
use tower_quota_testkit::{ManualClock, block_on};

use super::pictures::{
    Area, BLUE, Drawn, GREY, RED, WIDTH, beside, centred, drawn, legend, stroke, text,
};
use crate::outage::{POINTS, SECONDS};
use crate::report::Report;

const PERIOD: Duration = Duration::from_secs(10);
/// The requests: start and end of each stretch and the time between requests, in milliseconds.
///
/// Each stretch begins shortly after a full second.
const STRETCHES: [(u64, u64, u64); 3] = [
    (0, 8_000, 500),
    (17_000, 24_000, 200),
    (24_000, 30_000, 2_000),
];
const FIRST: u64 = 100;

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
        ("token bucket (default)", quota),
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
        if decision.is_allowed() {
            row.passed.push(at + decision.wait());
        } else {
            row.refused.push(at);
        }
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
        let from_first = passed.iter().filter(|&&at| first <= at);
        from_first.filter(|&&at| at < first + PERIOD).count()
    };
    passed.iter().map(within).max().unwrap_or_default()
}

/// Draws the requests that each algorithm admits, in rows below each other.
pub(super) fn algorithms() -> Drawn {
    const LEFT: i32 = 212;
    const RIGHT: i32 = WIDTH as i32 - 112;
    const TOP: i32 = 112;
    const ROW: i32 = 44;
    let x = |at: Duration| LEFT + (f64::from(RIGHT - LEFT) * at.as_secs_f64() / 30.0) as i32;
    let lines = |root: &Area<'_>, y: i32, times: &[Duration], colour: RGBColor| {
        times.iter().try_for_each(|at| {
            let line = [(x(*at), y - 11), (x(*at), y + 11)];
            root.draw(&PathElement::new(line, stroke(colour, 2)))
        })
    };
    let title = "The same requests under 10 units in 10 seconds";
    let unit = "a line: a request passes, at the time it passes; a dot: a refusal";
    let rows = rows()?;
    let bottom = TOP + ROW * (rows.len() as i32 + 1);
    drawn(bottom as u32 + 40, title, unit, |root| {
        for second in (0..=30).step_by(5) {
            let at = x(Duration::from_secs(second));
            root.draw(&PathElement::new(
                [(at, TOP - 6), (at, bottom)],
                GREY.mix(0.3),
            ))?;
            let label = format!("{second} s");
            root.draw(&Text::new(label, (at, bottom + 8), centred(17, VPos::Top)))?;
        }
        for (phase, second) in [("steady", 4), ("pause", 12), ("burst", 20), ("slow", 27)] {
            let at = x(Duration::from_secs(second));
            root.draw(&Text::new(phase, (at, TOP - 8), centred(17, VPos::Bottom)))?;
        }
        let right = (RIGHT + 10, TOP - 26);
        root.draw(&Text::new("most in 10 s", right, text(17)))?;
        let asked: Vec<_> = requests().collect();
        let y = TOP + ROW / 2;
        root.draw(&Text::new("all requests", (14, y), beside(17)))?;
        lines(root, y, &asked, GREY)?;
        for (number, row) in (1..).zip(&rows) {
            let y = TOP + ROW * number + ROW / 2;
            root.draw(&Text::new(row.name, (14, y), beside(17)))?;
            for at in &row.refused {
                root.draw(&Circle::new((x(*at), y), 2, RED.filled()))?;
            }
            lines(root, y, &row.passed, BLUE)?;
            let most = most_in_a_period(&row.passed).to_string();
            root.draw(&Text::new(most, (RIGHT + 40, y), beside(17)))?;
        }
        Ok(())
    })
}

/// One moment of an instance that decides from leases.
struct Moment {
    at: Duration,
    units_held: u64,
    /// Requests that waited for the store, and calls for leases, since the start.
    calls: u64,
}

/// The milliseconds in which the client sends requests, and in which it is watched.
const SENDING: u64 = 400;
const WATCHED: u64 = 600;

/// Lets one client send two requests in each millisecond, half of its quota.
async fn leasing() -> Vec<Moment> {
    let quota = Quota::per_second(4_000);
    let clock = VirtualClock::start();
    let server = Arc::new(MemoryStore::with_clock(8, clock.clone()));
    let delays = Duration::from_micros(900)..Duration::from_micros(1_100);
    let network = Network::new(server, 1).delays(delays);
    let store = Leased::with_clock(network, LeaseOptions::default(), clock.clone());
    let (began, mut moments) = (clock.now(), Vec::new());
    for millis in 0..WATCHED {
        let left = Duration::from_millis(millis).saturating_sub(clock.now().since(began));
        if !left.is_zero() {
            simulation::pass(left).await;
        }
        let stats = store.stats();
        moments.push(Moment {
            at: clock.now().since(began),
            units_held: stats.units_held,
            calls: stats.by_store + stats.renewals,
        });
        for _ in 0..if millis < SENDING { 2 } else { 0 } {
            let key = Key::number(Name::new("client"), 1);
            tokio::spawn(store.check(&[Charge::new("second", &quota, &key)]));
        }
    }
    store.close(Duration::from_secs(1)).await;
    moments
}

/// Draws the units that an instance holds, and its calls to the store.
pub(super) fn lease() -> Drawn {
    let moments = simulation::run(leasing());
    let calls = moments.last().map_or(0, |last| last.calls);
    let title = format!(
        "The life of leases: {} requests, {calls} calls to the store",
        2 * SENDING
    );
    let unit = "units that an instance holds for a client, who stops after 400 ms";
    drawn(440, &title, unit, |root| {
        let top = legend(root, [("units held", BLUE), ("a call to the store", RED)])?;
        let most = moments.iter().map(|moment| moment.units_held).max();
        let most = most.unwrap_or_default() as f64;
        let mut chart = ChartBuilder::on(root)
            .margin_top(top)
            .margin_right(40)
            .margin_bottom(4)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..WATCHED as f64, 0.0..most * 1.15)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .y_labels(6)
            .x_labels(6)
            .label_style(text(19))
            .x_label_formatter(&|millis| format!("{millis:.0} ms"))
            .y_label_formatter(&|units| format!("{units:.0}"))
            .draw()?;
        let millis = |moment: &Moment| moment.at.as_secs_f64() * 1e3;
        let held = moments
            .iter()
            .map(|moment| (millis(moment), moment.units_held as f64));
        chart.draw_series(LineSeries::new(held, stroke(BLUE, 3)))?;
        let pairs = moments.windows(2);
        let called = pairs.filter(|pair| pair[1].calls > pair[0].calls);
        let dots = called.map(|pair| Circle::new((millis(&pair[1]), most * 1.08), 5, RED.filled()));
        chart.draw_series(dots)?;
        Ok(())
    })
}

/// Draws what passes before, in and after an outage of Redis, for each choice of a limit.
pub(super) fn outage(report: &Report) -> Drawn {
    let title = "While Redis is away: 4,000 requests/s, 1,000 within the quota";
    let unit = "admitted requests a second, by the choice of the limit";
    let choices = [("allow", RED, 5), ("local", BLUE, 5), ("refuse", GREY, 3)];
    drawn(440, title, unit, |root| {
        let top = legend(root, choices.map(|(name, colour, _)| (name, colour)))?;
        let [before, during, after] = SECONDS;
        let mut chart = ChartBuilder::on(root)
            .margin_top(top)
            .margin_right(24)
            .margin_bottom(4)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(-before..during + after, 0.0..5_000.0)?;
        let away = Rectangle::new([(0.0, 0.0), (during, 5_000.0)], GREY.mix(0.15).filled());
        chart.draw_series([away])?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_labels(10)
            .y_labels(5)
            .label_style(text(19))
            .x_label_formatter(&|second| format!("{second:.0} s"))
            .y_label_formatter(&|rate| format!("{rate:.0}"))
            .draw()?;
        let (x, y) = chart.backend_coord(&(during / 2.0, 4_900.0));
        root.draw(&Text::new("Redis is away", (x, y), centred(17, VPos::Top)))?;
        for (name, colour, width) in choices {
            let timeline = report
                .timelines
                .get(name)
                .ok_or("a choice without a timeline")?;
            // A point lies in the middle of its span.
            let second = |point: usize| (point as f64 + 0.5) / POINTS - before;
            let points = timeline.iter().enumerate();
            let points = points.map(|(point, rate)| (second(point), *rate));
            chart.draw_series(LineSeries::new(points, stroke(colour, width)))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use tower_quota_core::Quota;

    use super::{PERIOD, most_in_a_period, row, rows};

    #[test]
    fn rows_stay_within_algorithm_bounds() {
        let rows = rows().unwrap();
        let of = |name: &str| {
            &rows
                .iter()
                .find(|row| row.name.starts_with(name))
                .unwrap()
                .passed
        };
        assert_eq!(most_in_a_period(of("sliding log")), 10);
        // Up to twice the units across a border.
        assert_eq!(most_in_a_period(of("fixed window")), 20);
        // A full bucket, and at most ten units that refill meanwhile.
        assert!((15..=20).contains(&most_in_a_period(of("token bucket (default)"))));
        assert!(most_in_a_period(of("token bucket, burst of 3")) <= 13);
        let turns = of("leaky bucket");
        let far_apart = |pair: &[std::time::Duration]| (pair[1] - pair[0]).as_millis() >= 1_000;
        assert!(turns.windows(2).all(far_apart), "{turns:?}");
    }

    #[test]
    fn gcra_passes_what_token_bucket_passes() {
        let quota = Quota::new(10, PERIOD);
        let passed = |quota| row("", quota).unwrap().passed;
        assert_eq!(passed(quota.gcra()), passed(quota));
    }
}
