//! A service in virtual time: workers, a queue, and clients that do not wait for each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use fastrand::Rng;

use super::bodies::Bodies;
use super::count::Count;
use super::limit::{Kind, Sample};
use super::peers::Algorithm;

/// A figure that changes over time, given in seconds.
pub(crate) type OverTime = Box<dyn Fn(f64) -> f64>;

/// What happens in a run. Times are in seconds.
pub(crate) struct Scene {
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) workers: OverTime,
    /// The time that a worker needs for a request.
    pub(crate) work: Work,
    /// Multiplies the work.
    pub(crate) slowness: OverTime,
    /// Multiplies the work of a request by the number of requests with a worker, for a contended resource.
    pub(crate) contention: fn(usize) -> f64,
    /// Requests a second.
    pub(crate) arrivals: OverTime,
    /// The share of requests that fail at once, without a worker.
    pub(crate) failing: OverTime,
    /// The interval and the length of pauses in which no work progresses.
    pub(crate) pauses: Option<(f64, f64)>,
    /// A fixed limit within the service, which refuses further requests at once.
    pub(crate) limit_within: Option<usize>,
    /// The share of responses with a long body, and its length.
    pub(crate) bodies: (f64, f64),
    /// Long bodies stay within the limit.
    pub(crate) until_end: bool,
    /// The client leaves the queue after this time.
    pub(crate) patience: Option<f64>,
    /// The service fails a request that has waited this long.
    pub(crate) timeout: Option<f64>,
    /// Later answers are not good.
    pub(crate) useful: f64,
}

/// The distribution of the work of a request, with a mean of 10 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    Exponential,
    /// 10 ms, give or take a tenth.
    Fixed,
    /// 5 ms, and an exponential part.
    Floor,
    /// Of ten requests, nine reads of 2 ms and a write of 82 ms.
    Bimodal,
    /// The share of writes changes between 0 and 20 % every few seconds.
    Mixed,
    /// Pareto, with infinite variance.
    HeavyTail,
}

pub(crate) const MEAN: f64 = 0.010;

impl Work {
    fn draw(self, rng: &mut Rng, now: f64) -> f64 {
        let exponential = |rng: &mut Rng| -(1.0 - rng.f64()).ln();
        let bimodal = |rng: &mut Rng, writes: f64| {
            let mean = if rng.f64() < writes { 8.2 } else { 0.2 };
            mean * (0.9 + 0.2 * rng.f64())
        };
        MEAN * match self {
            Self::Exponential => exponential(rng),
            Self::Fixed => 0.9 + 0.2 * rng.f64(),
            Self::Floor => 0.5 + 0.5 * exponential(rng),
            Self::Bimodal => bimodal(rng, 0.1),
            Self::Mixed => {
                let writes = 0.1 + 0.1 * (now / 1.7).sin();
                bimodal(rng, writes)
            }
            Self::HeavyTail => (1.0 - rng.f64()).powf(-1.0 / 1.5) / 3.0,
        }
    }
}

impl Scene {
    /// Returns a service of 16 workers with 10 ms of work a request, and a steady load in multiples of the capacity.
    pub(crate) fn steady(work: Work, load: f64) -> Self {
        Self {
            seed: 1,
            seconds: 30.0,
            workers: Box::new(|_| 16.0),
            work,
            slowness: Box::new(|_| 1.0),
            contention: |_| 1.0,
            arrivals: Box::new(move |_| load * 16.0 / MEAN),
            failing: Box::new(|_| 0.0),
            pauses: None,
            limit_within: None,
            bodies: (0.0, 0.0),
            until_end: false,
            patience: None,
            timeout: None,
            useful: 0.2,
        }
    }
}

/// What happened in one second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Second {
    /// Answered in time.
    pub(crate) good: u32,
    /// The latencies of the answers, in seconds.
    pub(crate) latencies: Vec<f32>,
    /// The highest limit.
    pub(crate) limit: usize,
    /// The lowest limit.
    pub(crate) least: usize,
}

/// The seconds of a run.
pub(crate) struct Outcome(pub(crate) Vec<Second>);

impl Outcome {
    fn within(&self, from: usize, to: usize) -> &[Second] {
        &self.0[from..to.min(self.0.len())]
    }

    /// Returns the good answers a second.
    pub(crate) fn goodput(&self, from: usize, to: usize) -> f64 {
        let seconds = self.within(from, to);
        let good: u32 = seconds.iter().map(|second| second.good).sum();
        f64::from(good) / seconds.len() as f64
    }

    /// Returns the 99th percentile of the latency in milliseconds.
    pub(crate) fn p99(&self, from: usize, to: usize) -> f64 {
        let seconds = self.within(from, to).iter();
        let mut latencies: Vec<f32> = seconds
            .flat_map(|second| second.latencies.clone())
            .collect();
        if latencies.is_empty() {
            return 0.0;
        }
        latencies.sort_by(f32::total_cmp);
        f64::from(latencies[latencies.len() * 99 / 100]) * 1e3
    }

    /// Returns the highest limit of each second.
    pub(crate) fn limits(&self) -> Vec<usize> {
        self.0.iter().map(|second| second.limit).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A worker ends its work.
    Done(Request),
    /// An answer without a worker.
    Fails(Request),
    /// A client or the service gives up a waiting request.
    GivesUp(u64),
    /// A long body ends, which may have left the limit after this period.
    BodyEnds(Option<u64>),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    number: u64,
    admitted: u64,
    in_progress: usize,
}

struct Run<'a> {
    scene: &'a Scene,
    rng: Rng,
    algorithm: &'a mut dyn Algorithm,
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    waiting: BTreeMap<u64, Request>,
    working: usize,
    count: Count,
    bodies: Bodies,
    seconds: Vec<Second>,
}

/// Runs a scene with an algorithm.
pub(crate) fn run(scene: &Scene, algorithm: &mut dyn Algorithm) -> Outcome {
    let mut run = Run {
        scene,
        rng: Rng::with_seed(scene.seed),
        algorithm,
        now: 0,
        events: BinaryHeap::new(),
        waiting: BTreeMap::new(),
        working: 0,
        count: Count::new(),
        bodies: Bodies::new(),
        seconds: vec![Second::default(); scene.seconds as usize],
    };
    let end = nanoseconds(scene.seconds);
    let (mut number, mut arrival) = (0, run.next_arrival());
    loop {
        let event = run.events.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        run.now = event.min(arrival);
        if run.now >= end {
            return Outcome(run.seconds);
        }
        if arrival <= event {
            number += 1;
            run.arrive(number);
            arrival = run.next_arrival();
        } else if let Some(Reverse((_, event))) = run.events.pop() {
            run.happen(event);
        }
    }
}

impl Run<'_> {
    fn next_arrival(&mut self) -> u64 {
        let rate = (self.scene.arrivals)(seconds(self.now));
        if rate <= 0.0 {
            // Asks again in 10 ms.
            return self.now + 10_000_000;
        }
        self.now + nanoseconds(-(1.0 - self.rng.f64()).ln() / rate).max(1)
    }

    fn arrive(&mut self, number: u64) {
        let limit = self.algorithm.limit();
        let idle = (self.scene.arrivals)(seconds(self.now)) <= 0.0;
        let second = &mut self.seconds[(self.now / 1_000_000_000) as usize];
        second.limit = second.limit.max(limit);
        second.least = if second.least == 0 {
            limit
        } else {
            second.least.min(limit)
        };
        if idle {
            return;
        }
        self.bodies.age(Duration::from_nanos(self.now), &self.count);
        let Some(in_progress) = self.count.enter(limit, usize::MAX, true) else {
            return;
        };
        let request = Request {
            number,
            admitted: self.now,
            in_progress,
        };
        let busy = self.working + self.waiting.len();
        let is_refused_within = self.scene.limit_within.is_some_and(|most| busy >= most);
        if is_refused_within || self.rng.f64() < (self.scene.failing)(seconds(self.now)) {
            self.at(0.000_1, Event::Fails(request));
        } else if self.working < (self.scene.workers)(seconds(self.now)) as usize {
            self.begin(request);
        } else {
            self.waiting.insert(number, request);
            for patience in [self.scene.patience, self.scene.timeout]
                .into_iter()
                .flatten()
            {
                self.at(patience, Event::GivesUp(number));
            }
        }
    }

    fn at(&mut self, after: f64, event: Event) {
        let at = self.now + nanoseconds(after).max(1);
        self.events.push(Reverse((at, event)));
    }

    /// Gives a worker to a request.
    fn begin(&mut self, request: Request) {
        self.working += 1;
        let now = seconds(self.now);
        let work = self.scene.work.draw(&mut self.rng, now);
        let work = work * (self.scene.slowness)(now) * (self.scene.contention)(self.working);
        let mut span = work;
        if let Some((interval, length)) = self.scene.pauses {
            // Pauses come at the end of each interval.
            let mut begin = (now / interval).floor() * interval + interval - length;
            while begin < now + span {
                let paused_before = (now - begin).clamp(0.0, length);
                span += length - paused_before;
                begin += interval;
            }
        }
        self.at(span, Event::Done(request));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Done(request) => {
                self.working -= 1;
                self.answer(request);
                let workers = (self.scene.workers)(seconds(self.now)) as usize;
                while self.working < workers {
                    let Some((_, next)) = self.waiting.pop_first() else {
                        break;
                    };
                    self.begin(next);
                }
            }
            // The layer does not count a refusal from within or an error at once.
            Event::Fails(_) => self.leave(),
            Event::GivesUp(number) => {
                if let Some(request) = self.waiting.remove(&number) {
                    self.leave();
                    if self.scene.timeout.is_some() {
                        self.completed(request, Kind::Failed);
                    }
                }
            }
            Event::BodyEnds(period) => {
                if period.is_none_or(|period| self.bodies.end(period)) {
                    self.leave();
                } else {
                    let _ = self.count.leave_long();
                }
            }
        }
    }

    fn answer(&mut self, request: Request) {
        let latency = seconds(self.now - request.admitted);
        let second = &mut self.seconds[(self.now / 1_000_000_000) as usize];
        second.latencies.push(latency as f32);
        if latency <= self.scene.useful {
            second.good += 1;
        }
        self.completed(request, Kind::Answered);
        let (share, length) = self.scene.bodies;
        if share > 0.0 && self.rng.f64() < share {
            let now = Duration::from_nanos(self.now);
            let period = (!self.scene.until_end).then(|| self.bodies.begin(now, &self.count));
            self.at(length, Event::BodyEnds(period));
        } else {
            self.leave();
        }
    }

    fn leave(&self) {
        let _ = self.count.leave();
    }

    fn completed(&mut self, request: Request, kind: Kind) {
        self.algorithm.completed(Sample {
            ended: Duration::from_nanos(self.now),
            took: Duration::from_nanos(self.now - request.admitted),
            in_progress: request.in_progress,
            kind,
        });
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
