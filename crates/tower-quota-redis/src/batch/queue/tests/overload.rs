//! Tests of an overloaded server, in simulated time.

use core::num::NonZeroU32;

use super::{Answered, now, pending};
use crate::batch::queue::*;

const DEADLINE: Duration = Duration::from_millis(50);
const SENDERS: usize = 2;
const SPAN: Duration = Duration::from_secs(3);
/// The time that a call and its answer take over the network.
const NEAR: Duration = Duration::from_micros(200);

#[derive(Clone, Copy)]
struct SlowServer {
    per_call: Duration,
    per_decision: Duration,
    distance: Duration,
    lateness: Duration,
    /// The server stops for the first duration at the start of every second duration.
    stalls: Option<(Duration, Duration)>,
    /// After the first duration, the distance is the second duration.
    moves: Option<(Duration, Duration)>,
}

struct Simulation {
    server: SlowServer,
    start: Instant,
    /// Earlier decisions do not count.
    counted_from: Instant,
    stores: Vec<Queue>,
    free_at: Instant,
    events: Vec<(Instant, usize, Event)>,
    answered: u64,
    asked: u64,
    /// The waits of the timely answers.
    waits: Vec<Duration>,
    /// The callers, in the order in which they give up.
    callers: VecDeque<(Instant, Answered)>,
    random: u64,
}

enum Event {
    /// The client gives up at the deadline, but the server still runs the call.
    CallEnds {
        end: CallEnd,
        began: Instant,
        batch: Batch,
    },
    PaceEnds,
}

impl Simulation {
    fn run(server: SlowServer, stores: usize, offered: u64) -> Self {
        Self::run_until(SPAN, Duration::ZERO, server, stores, offered)
    }

    /// Runs until an instant, and counts the decisions from another instant on.
    fn run_until(
        span: Duration,
        counted_from: Duration,
        server: SlowServer,
        stores: usize,
        offered: u64,
    ) -> Self {
        let start = now();
        // The breaker stays closed, because its pauses are random.
        let queue = || {
            Queue::new(
                SENDERS,
                1,
                DEADLINE,
                Breaker::new(NonZeroU32::MAX, DEADLINE),
            )
        };
        let mut simulation = Self {
            server,
            start,
            counted_from: start + counted_from,
            stores: (0..stores).map(|_| queue()).collect(),
            free_at: start,
            events: Vec::new(),
            answered: 0,
            asked: 0,
            waits: Vec::new(),
            callers: VecDeque::new(),
            random: 1,
        };
        let mut arrival = start;
        while arrival < start + span {
            simulation.play_until(arrival);
            simulation.arrive(arrival);
            arrival += Duration::from_micros(simulation.random(2_000_000 / offered));
        }
        simulation.play_until(arrival + SPAN);
        simulation
    }

    /// Returns the timely answers per second for a rate of decisions.
    fn answers(server: SlowServer, stores: usize, offered: u64) -> u64 {
        Self::run(server, stores, offered).answered / SPAN.as_secs()
    }

    fn play_until(&mut self, until: Instant) {
        loop {
            let events = self.events.iter().enumerate();
            let first = events.min_by_key(|(_, (at, _, _))| *at);
            let Some((number, _)) = first.filter(|(_, (at, _, _))| *at <= until) else {
                return;
            };
            let (at, store, event) = self.events.swap_remove(number);
            match event {
                Event::PaceEnds => self.stores[store].has_paced(),
                Event::CallEnds { end, began, batch } => {
                    if end == CallEnd::Answered {
                        for pending in &batch.decisions {
                            let arrived = pending.arrived;
                            if arrived >= self.counted_from && at <= arrived + DEADLINE {
                                self.answered += 1;
                                self.waits.push(at - arrived);
                            }
                        }
                    }
                    let span = CallSpan {
                        began,
                        weight: batch.weight,
                        under_way: batch.under_way,
                    };
                    self.stores[store].call_ended(&span, Some(end), at);
                }
            }
            self.step(store, at);
        }
    }

    fn arrive(&mut self, at: Instant) {
        self.asked += u64::from(at >= self.counted_from);
        let store = usize::try_from(self.random(self.stores.len() as u64 - 1)).unwrap();
        let queue = &mut self.stores[store];
        let (decision, caller) = pending(at);
        if queue.admit(&decision.request.template, at).is_err() {
            return;
        }
        queue.push(decision);
        let begins = queue.begin_sender(at);
        while self
            .callers
            .front()
            .is_some_and(|(gives_up_at, _)| *gives_up_at <= at)
        {
            self.callers.pop_front();
        }
        self.callers.push_back((at + DEADLINE, caller));
        if begins {
            self.step(store, at);
        }
    }

    fn step(&mut self, store: usize, at: Instant) {
        let queue = &mut self.stores[store];
        queue.take_expired(at);
        match queue.next_step(at) {
            Step::End => queue.sender_ended(false),
            Step::WaitUntil(due) => self.events.push((due, store, Event::PaceEnds)),
            Step::Send(batch) if batch.decisions.is_empty() => self.step(store, at),
            Step::Send(batch) => self.send(store, batch, at),
        }
    }

    fn send(&mut self, store: usize, batch: Batch, at: Instant) {
        let weight = u32::try_from(batch.weight).unwrap();
        let work = self.server.per_call + self.server.per_decision * weight;
        // The time varies from 80 to 120 percent of the service time.
        self.free_at =
            self.free_at.max(at) + work * u32::try_from(80 + self.random(40)).unwrap() / 100;
        if let Some((stall, every)) = self.server.stalls {
            let since_stall = (self.free_at - self.start).as_nanos() % every.as_nanos();
            let since_stall = Duration::from_nanos(u64::try_from(since_stall).unwrap());
            self.free_at += stall.saturating_sub(since_stall);
        }
        let mut answer_at = self.free_at + self.server.distance;
        if let Some((after, distance)) = self.server.moves
            && at >= self.start + after
        {
            answer_at = self.free_at + distance;
        }
        if !self.server.lateness.is_zero() && self.random(99) == 0 {
            answer_at += self.server.lateness;
        }
        let end = if answer_at <= at + DEADLINE {
            CallEnd::Answered
        } else {
            CallEnd::Late
        };
        let event = Event::CallEnds {
            end,
            began: at,
            batch,
        };
        self.events
            .push((answer_at.min(at + DEADLINE), store, event));
    }

    fn random(&mut self, most: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % (most + 1)
    }
}

/// Calls that wait at a busy server nearby are not on a long way, so more of them would only wait longer.
#[test]
fn busy_server_nearby_gets_large_calls() {
    let server = SlowServer {
        per_call: Duration::from_micros(100),
        per_decision: Duration::from_micros(12),
        distance: NEAR,
        lateness: Duration::ZERO,
        stalls: None,
        moves: None,
    };
    let mut simulation = Simulation::run(server, 8, 16_000);
    assert_eq!(simulation.answered, simulation.asked);
    simulation.waits.sort_unstable();
    let slowest = simulation.waits[simulation.waits.len() * 99 / 100];
    assert!(slowest < Duration::from_millis(8), "{slowest:?}");
}

// Each bound is four fifths of the rate of answers at full load.
#[test]
fn goodput_lasts_under_overload() {
    for (stores, per_call, rate) in [
        (1, 300, 4_900),
        (1, 3_000, 3_300),
        (8, 300, 3_800),
        (8, 1_000, 1_450),
        (32, 300, 1_700),
    ] {
        let server = SlowServer {
            per_call: Duration::from_micros(per_call),
            per_decision: Duration::from_micros(150),
            distance: NEAR,
            lateness: Duration::ZERO,
            stalls: None,
            moves: None,
        };
        for multiple in [2, 4, 8] {
            let answers = Simulation::answers(server, stores, multiple * rate);
            assert!(
                answers >= rate,
                "{stores} stores, {per_call} us a call, {multiple}x: {answers}"
            );
        }
    }
}

#[test]
fn stalls_below_half_deadline_fail_no_decision() {
    for (stall, offered) in [(20, 1_000), (20, 4_000), (24, 1_000), (24, 4_000)] {
        let server = SlowServer {
            per_call: Duration::from_micros(100),
            per_decision: Duration::from_micros(3),
            distance: NEAR,
            lateness: Duration::ZERO,
            stalls: Some((Duration::from_millis(stall), Duration::from_millis(110))),
            moves: None,
        };
        let simulation = Simulation::run(server, 1, offered);
        assert_eq!(simulation.answered, simulation.asked, "{stall} ms");
    }
}

#[test]
fn server_near_the_deadline_answers_every_decision() {
    for (millis, offered) in [(38, 100), (38, 2_000), (45, 100), (45, 1_000), (47, 500)] {
        let simulation = Simulation::run(distant(millis, 0), 1, offered);
        let (answered, asked) = (simulation.answered, simulation.asked);
        assert_eq!(answered, asked, "{millis} ms, {offered} a second");
    }
}

#[test]
fn late_answers_near_deadline_fail_few_decisions() {
    for (millis, offered) in [(38, 100), (38, 2_000), (45, 100), (45, 1_000)] {
        let simulation = Simulation::run(distant(millis, 12), 1, offered);
        let (answered, asked) = (simulation.answered, simulation.asked);
        assert!(
            answered * 100 >= asked * 95,
            "{millis} ms, {offered} a second: {answered} of {asked}"
        );
    }
}

/// A failover to another zone costs the latency of the zone, once the store has seen only the new distance.
#[test]
fn farther_server_answers_every_decision() {
    let seconds = Duration::from_secs;
    for millis in [18, 22, 25, 30, 38, 45] {
        for offered in [100, 1_000] {
            let mut server = distant(0, 0);
            server.moves = Some((seconds(1), Duration::from_millis(millis)));
            let simulation = Simulation::run_until(seconds(8), seconds(5), server, 1, offered);
            let (answered, asked) = (simulation.answered, simulation.asked);
            assert_eq!(answered, asked, "{millis} ms, {offered} a second");
        }
    }
}

/// The first slow answer shows the new distance.
#[test]
fn farther_server_fails_few_decisions_at_once() {
    let (second, end) = (Duration::from_secs(1), Duration::from_millis(1_500));
    for (millis, offered) in [(22, 1_000), (30, 1_000), (38, 200), (45, 1_000)] {
        let mut server = distant(0, 0);
        server.moves = Some((second, Duration::from_millis(millis)));
        let simulation = Simulation::run_until(end, second, server, 1, offered);
        let (answered, asked) = (simulation.answered, simulation.asked);
        assert!(
            answered * 100 >= asked * 97,
            "{millis} ms, {offered} a second: {answered} of {asked}"
        );
    }
}

/// The queue of an overloaded server does not count as its distance.
#[test]
fn goodput_lasts_when_no_call_is_fast() {
    let server = SlowServer {
        per_call: Duration::from_micros(300),
        per_decision: Duration::from_micros(150),
        distance: NEAR,
        lateness: Duration::ZERO,
        stalls: None,
        moves: None,
    };
    for (stores, rate) in [(8, 3_800), (32, 1_700)] {
        let seconds = Duration::from_secs;
        let simulation = Simulation::run_until(seconds(8), seconds(5), server, stores, 4 * rate);
        let answers = simulation.answered / 3;
        assert!(answers >= rate, "{stores} stores: {answers}");
    }
}

/// While a queue stands, small calls would cost the server the time that it needs for the queue.
#[test]
fn load_below_capacity_goes_in_large_calls() {
    let seconds = Duration::from_secs;
    for (per_call, per_decision, offered, percent) in [
        (500, 200, 3_300, 99),
        (1_000, 425, 1_360, 98),
        (1_000, 425, 1_550, 97),
        (4_000, 850, 380, 95),
    ] {
        let server = SlowServer {
            per_call: Duration::from_micros(per_call),
            per_decision: Duration::from_micros(per_decision),
            distance: NEAR,
            lateness: Duration::ZERO,
            stalls: None,
            moves: None,
        };
        let simulation = Simulation::run_until(seconds(8), seconds(3), server, 2, offered);
        let (answered, asked) = (simulation.answered, simulation.asked);
        assert!(
            answered * 100 >= asked * percent,
            "{per_call} us a call, {offered} a second: {answered} of {asked}"
        );
    }
}

/// Requests at a little more than the capacity make a queue that stands for seconds.
#[test]
fn standing_queue_is_no_distance() {
    let seconds = Duration::from_secs;
    for (stores, per_call, offered, rate) in [
        (2, 300, 9_800, 5_700),
        (8, 300, 5_700, 4_700),
        (8, 300, 7_600, 4_900),
    ] {
        let server = SlowServer {
            per_call: Duration::from_micros(per_call),
            per_decision: Duration::from_micros(150),
            distance: NEAR,
            lateness: Duration::ZERO,
            stalls: None,
            moves: None,
        };
        let simulation = Simulation::run_until(seconds(8), seconds(3), server, stores, offered);
        let answers = simulation.answered / 5;
        assert!(
            answers >= rate,
            "{stores} stores, {offered} offered: {answers}"
        );
    }
}

fn distant(millis: u64, late_millis: u64) -> SlowServer {
    SlowServer {
        per_call: Duration::from_micros(100),
        per_decision: Duration::from_micros(3),
        distance: Duration::from_millis(millis),
        lateness: Duration::from_millis(late_millis),
        stalls: None,
        moves: None,
    }
}
