//! Tests of stores that ask one server for more than it can do, in simulated time.

use core::num::NonZeroU32;

use super::super::caller::now;
use super::tests::{Answered, pending};
use super::*;

const DEADLINE: Duration = Duration::from_millis(50);
const SLOTS: usize = 2;
/// The time of a simulation.
const SPAN: Duration = Duration::from_secs(3);
/// The time that a call and its answer are on the way.
const ON_THE_WAY: Duration = Duration::from_micros(200);

/// A server that takes its calls one after the other.
#[derive(Clone, Copy)]
struct SlowServer {
    per_call: Duration,
    per_decision: Duration,
}

/// Stores that are asked at random instants, and their calls under way.
struct Simulation {
    server: SlowServer,
    stores: Vec<Queue>,
    /// The end of the last call in the server.
    free_at: Instant,
    calls: Vec<SimulatedCall>,
    answered: u64,
    /// Callers that may still wait, with the instants at which they give up.
    callers: Vec<(Instant, Answered)>,
    random: u64,
}

/// A call under way. The client gives it up after a deadline, the server does it all the same.
struct SimulatedCall {
    ends_at: Instant,
    end: CallEnd,
    store: usize,
    slot: usize,
    began: Instant,
    batch: Batch,
}

impl Simulation {
    /// Returns the answers in time per second, if so many decisions are asked for in a second.
    fn answers(server: SlowServer, stores: usize, offered: u64) -> u64 {
        let start = now();
        // The breaker stays closed: its pauses differ from run to run.
        let queue = || Queue::new(SLOTS, DEADLINE, Breaker::new(NonZeroU32::MAX, DEADLINE));
        let mut simulation = Self {
            server,
            stores: (0..stores).map(|_| queue()).collect(),
            free_at: start,
            calls: Vec::new(),
            answered: 0,
            callers: Vec::new(),
            random: 1,
        };
        let mut arrival = start;
        while arrival < start + SPAN {
            while let Some(first) = simulation
                .first_end()
                .filter(|(ends_at, _)| *ends_at <= arrival)
            {
                simulation.end(first.1);
            }
            simulation.arrive(arrival);
            arrival += Duration::from_micros(simulation.random(2_000_000 / offered));
        }
        simulation.answered / SPAN.as_secs()
    }

    fn first_end(&self) -> Option<(Instant, usize)> {
        self.calls
            .iter()
            .enumerate()
            .map(|(number, call)| (call.ends_at, number))
            .min()
    }

    fn arrive(&mut self, at: Instant) {
        let store = usize::try_from(self.random(self.stores.len() as u64 - 1)).unwrap();
        let queue = &mut self.stores[store];
        if queue.admit(Operation::Check, at).is_err() {
            return;
        }
        let (decision, caller) = pending(Some(at + DEADLINE));
        queue.push(decision);
        self.callers.retain(|(gives_up_at, _)| *gives_up_at > at);
        self.callers.push((at + DEADLINE, caller));
        if let Some(slot) = queue.has_work().then(|| queue.take_slot()).flatten() {
            self.send(store, slot, at);
        }
    }

    fn send(&mut self, store: usize, slot: usize, at: Instant) {
        let queue = &mut self.stores[store];
        let mut batch = queue.take_batch(at);
        while batch.decisions.is_empty() && !batch.late.is_empty() {
            batch = queue.take_batch(at);
        }
        if batch.decisions.is_empty() {
            return queue.free_slot(slot);
        }
        let weight = u32::try_from(batch.weight).unwrap();
        let work = self.server.per_call + self.server.per_decision * weight;
        // From 80 to 120 percent of that.
        self.free_at =
            self.free_at.max(at) + work * u32::try_from(80 + self.random(40)).unwrap() / 100;
        let answer_at = self.free_at + ON_THE_WAY;
        let end = if answer_at <= at + DEADLINE {
            CallEnd::Answered
        } else {
            CallEnd::Late
        };
        self.calls.push(SimulatedCall {
            ends_at: answer_at.min(at + DEADLINE),
            end,
            store,
            slot,
            began: at,
            batch,
        });
    }

    fn end(&mut self, call: usize) {
        let SimulatedCall {
            ends_at,
            end,
            store,
            slot,
            began,
            batch,
        } = self.calls.swap_remove(call);
        if end == CallEnd::Answered {
            let in_time = batch
                .decisions
                .iter()
                .filter(|pending| pending.expiry.is_some_and(|expiry| ends_at <= expiry));
            self.answered += in_time.count() as u64;
        }
        let span = CallSpan {
            began,
            weight: batch.weight,
            load: batch.load,
        };
        self.stores[store].call_ended(&span, Some(end), ends_at);
        self.send(store, slot, ends_at);
    }

    /// Returns a number up to `most`: the same ones in each simulation.
    fn random(&mut self, most: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % (most + 1)
    }
}

// Each of these rates is four fifths of what the server answers when it is asked for about as much as it can.
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
