//! Requests at a fixed rate, whether or not earlier ones were answered.
//!
//! The latency of a request counts from its planned instant, so a slow server cannot slow the measurement down.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::connection::{Answers, Connection, Protocol};
use crate::Outcome;
use crate::turns::now;

/// Connections, as of a gateway with four threads.
const CONNECTIONS: usize = 4;
/// Requests in flight, a quarter of the default of Envoy's circuit breaker.
pub(crate) const IN_FLIGHT: usize = 256;
/// Envoy's default timeout. A request that has not been sent or answered until then is late.
pub(crate) const PATIENCE: Duration = Duration::from_millis(20);
/// The load before the measured span, longer than a lease, so that leases are measured in use and not at their start.
const WARM_UP: Duration = Duration::from_millis(600);
/// The longest wait for the last answers.
const DRAIN: Duration = Duration::from_secs(2);
/// The longest sleep, after which the load looks for room again.
const NAP: Duration = Duration::from_micros(100);

/// The shortest sleep. A shorter one can end before it begins, so it never lets the receivers run on their shared core.
const SHORTEST_NAP: Duration = Duration::from_micros(10);

/// A load on a port of this machine.
pub(crate) struct OpenLoop<'a> {
    pub(crate) port: u16,
    pub(crate) protocol: Protocol,
    /// Requests per second.
    pub(crate) rate: f64,
    /// The measured time, after the warm-up.
    pub(crate) span: Duration,
    /// The most requests in flight, on all connections together.
    pub(crate) in_flight: usize,
    /// The longest wait of a request while so many are in flight. Zero as for a circuit breaker.
    pub(crate) wait: Duration,
    /// The seconds of CPU that each of these has used.
    pub(crate) meters: Vec<Box<dyn Fn() -> f64 + 'a>>,
}

/// What came of a load, after its warm-up.
#[derive(Clone, Default)]
pub(crate) struct Figures {
    /// Answers a second.
    pub(crate) rate: f64,
    /// Admissions a second that came within the patience.
    pub(crate) in_time: f64,
    /// The share of answers that came after the patience.
    pub(crate) late: f64,
    /// The share of answers that admit.
    pub(crate) admitted: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    /// The microseconds of CPU for each answer, by meter.
    pub(crate) cpu: Vec<f64>,
}

impl OpenLoop<'_> {
    /// Sends the load. `value` writes the value of a request.
    pub(crate) fn run(&self, mut value: impl FnMut(&mut Vec<u8>)) -> Outcome<Figures> {
        // Some systems end a sleep 50 us late to save power, and keep to it where they permit no less.
        let _ = fs::write("/proc/self/timerslack_ns", "1000");
        let answers = Arc::new(Answers::default());
        let (began, warm_up) = (now(), WARM_UP);
        let (mut connections, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..CONNECTIONS {
            let (connection, receiver) =
                Connection::open(self.port, self.protocol, began, &answers)?;
            let protocol = self.protocol;
            receivers.push(thread::spawn(move || receiver.run(protocol, warm_up)));
            connections.push(connection);
        }
        let mut load = Sent {
            began,
            next: 0,
            given_up: 0,
            connections,
        };
        load.send(self, warm_up, &mut value);
        let before = (now(), Counted::read(&answers), self.cpu());
        let first = load.next;
        load.given_up = 0;
        load.send(self, warm_up + self.span, &mut value);
        let after = (now(), Counted::read(&answers), self.cpu());
        let (planned, given_up) = (load.next - first, load.given_up);
        load.drain();
        let mut latencies = Vec::new();
        for receiver in receivers {
            latencies.extend(receiver.join().map_err(|_| "a receiver has panicked")?);
        }
        let timed = latencies.len();
        let missing = (planned - given_up).saturating_sub(timed as u64);
        // A request without an answer is as late as can be.
        latencies.extend((0..given_up + missing).map(|_| u32::MAX));
        latencies.sort_unstable();
        let counted = after.1.since(&before.1);
        let seconds = (after.0 - before.0).as_secs_f64();
        let patience = u32::try_from(PATIENCE.as_micros())?;
        let in_time = latencies.partition_point(|micros| *micros <= patience) as f64;
        let answered = counted.answered().max(1) as f64;
        let used = before.2.iter().zip(&after.2);
        let used = used.map(|(before, after)| (after - before) * 1e6 / answered);
        let at = |share: f64| {
            let position = (latencies.len() as f64 * share) as usize;
            latencies.get(position).copied().map_or(0.0, f64::from)
        };
        let admitted = counted.admitted as f64 / answered;
        Ok(Figures {
            rate: answered / seconds,
            in_time: in_time * admitted / seconds,
            late: 1.0 - in_time / timed.max(1) as f64,
            admitted,
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            cpu: used.collect(),
        })
    }

    fn cpu(&self) -> Vec<f64> {
        self.meters.iter().map(|meter| meter()).collect()
    }
}

/// The requests of a load so far.
struct Sent {
    began: Instant,
    next: u64,
    /// Requests that found no place in time.
    given_up: u64,
    connections: Vec<Connection>,
}

impl Sent {
    /// Sends what is planned until this time after the beginning.
    #[expect(clippy::disallowed_methods, reason = "the plan is in real time")]
    fn send(&mut self, load: &OpenLoop<'_>, until: Duration, value: &mut dyn FnMut(&mut Vec<u8>)) {
        let planned = |request: u64| Duration::from_secs_f64(request as f64 / load.rate);
        let most = load.in_flight / CONNECTIONS;
        let mut bytes = Vec::new();
        while self.began.elapsed() < until {
            let elapsed = self.began.elapsed();
            let mut turn = 0;
            while planned(self.next) <= elapsed {
                let connections = &mut self.connections;
                let count = connections.len();
                let from = self.next as usize;
                let free =
                    (0..count).find(|step| connections[(from + step) % count].has_room(most));
                if let Some(step) = free {
                    bytes.clear();
                    value(&mut bytes);
                    connections[(from + step) % count].push(planned(self.next), &bytes);
                } else {
                    // What has waited for so long fails in the gateway.
                    let oldest = elapsed.saturating_sub(load.wait).as_secs_f64() * load.rate;
                    let oldest = (oldest as u64).max(self.next);
                    self.given_up += oldest - self.next;
                    self.next = oldest;
                    break;
                }
                self.next += 1;
                turn += 1;
                // Sends before the batch becomes so large that its first requests wait for its last.
                if turn == 64 {
                    break;
                }
            }
            for connection in &mut self.connections {
                // A lost connection has no room.
                let _ = connection.flush();
            }
            if turn < 64 {
                let ahead = planned(self.next).saturating_sub(self.began.elapsed());
                thread::sleep(ahead.clamp(SHORTEST_NAP, NAP));
            }
        }
    }

    /// Waits for the answers, and ends the connections.
    #[expect(clippy::disallowed_methods, reason = "the plan is in real time")]
    fn drain(self) {
        let ended = now();
        while ended.elapsed() < DRAIN && !self.connections.iter().all(Connection::is_idle) {
            thread::sleep(Duration::from_millis(1));
        }
        for connection in self.connections {
            connection.close();
        }
    }
}

/// The answers at an instant.
struct Counted {
    admitted: u64,
    refused: u64,
}

impl Counted {
    fn read(answers: &Answers) -> Self {
        Self {
            admitted: answers.admitted.load(Ordering::Relaxed),
            refused: answers.refused.load(Ordering::Relaxed),
        }
    }

    const fn answered(&self) -> u64 {
        self.admitted + self.refused
    }

    const fn since(&self, earlier: &Self) -> Self {
        Self {
            admitted: self.admitted - earlier.admitted,
            refused: self.refused - earlier.refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::{OpenLoop, PATIENCE};
    use crate::server::calls::{Calls, Users};
    use crate::server::connection::Protocol;
    use crate::server::{plain, process};

    // The messages on a connection are larger than its first window.
    #[test]
    fn every_planned_request_is_answered() {
        let port = process::free_port().unwrap();
        thread::spawn(move || plain::serve(port).map_err(|error| error.to_string()));
        let mut call = Vec::new();
        let calls = Calls::named("k", 10, Users::Returning(9));
        calls.writer()(&mut call);
        while !matches!(process::is_admitted(port, Protocol::Grpc, &call), Ok(true)) {}
        let load = OpenLoop {
            port,
            protocol: Protocol::Grpc,
            rate: 250.0,
            span: Duration::from_secs(4),
            in_flight: 4_000,
            wait: PATIENCE,
            meters: vec![Box::new(|| 0.0)],
        };
        let figures = load.run(calls.writer()).unwrap();
        assert!(figures.p999 < 4e9, "a request has no answer");
        assert!((figures.admitted - 1.0).abs() < 1e-9);
    }
}
