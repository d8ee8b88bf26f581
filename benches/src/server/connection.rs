//! A connection of HTTP/2 that sends the same request with other values, at a few hundred nanoseconds each.
//!
//! A client of a library takes as much CPU as the server that it measures. This one writes frames with prepared fields, and
//! reads of an answer only what it counts.

use std::io::{Read, Write};
use std::mem;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::turns::now;

/// Streams in flight whose planned instants a connection remembers.
const SLOTS: usize = 1 << 14;
/// The window of a connection before the server grants more.
const FIRST_WINDOW: i64 = 65_535;
/// The most streams of a connection if the server names no number.
const MOST_STREAMS: usize = 1_024;
/// A connection is lost after so long without an answer, so that a suite ends with a server that stands still.
const SILENCE: Duration = Duration::from_secs(30);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW: u8 = 8;
/// The flags of the last frame of a stream and of an acknowledgement, and of complete fields.
const END: u8 = 1;
const END_HEADERS: u8 = 4;

/// What a connection asks for.
#[derive(Clone, Copy)]
pub(crate) enum Protocol {
    /// A call of Envoy's rate limit service. Its value is the message.
    Grpc,
    /// A `GET` of `/`. Its value is the field `x-user`.
    Http,
}

/// An answer, as far as it is counted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Answer {
    Admitted,
    Refused,
    #[default]
    Failed,
}

/// The answers so far.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) admitted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl Answers {
    fn count(&self, answer: Answer) {
        let counter = match answer {
            Answer::Admitted => &self.admitted,
            Answer::Refused => &self.refused,
            Answer::Failed => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The sending half, and what the receiving half tells it.
pub(crate) struct Connection {
    stream: TcpStream,
    shared: Arc<Shared>,
    protocol: Protocol,
    next: u32,
    out: Vec<u8>,
}

struct Shared {
    began: Instant,
    /// Planned instants in microseconds after the beginning, by stream.
    planned: Box<[AtomicU32]>,
    in_flight: AtomicUsize,
    window: AtomicI64,
    most: AtomicUsize,
    /// Frames that answer the server.
    replies: Mutex<Vec<u8>>,
    is_lost: AtomicBool,
    answers: Arc<Answers>,
}

impl Shared {
    fn slot(&self, stream: u32) -> &AtomicU32 {
        &self.planned[slot(stream)]
    }
}

const fn slot(stream: u32) -> usize {
    (stream as usize >> 1) % SLOTS
}

impl Connection {
    /// Connects to a port of this machine. Planned instants count from `began`.
    pub(crate) fn open(
        port: u16,
        protocol: Protocol,
        began: Instant,
        answers: &Arc<Answers>,
    ) -> Outcome<(Self, Receiver)> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        let shared = Arc::new(Shared {
            began,
            planned: (0..SLOTS).map(|_| AtomicU32::new(0)).collect(),
            in_flight: AtomicUsize::new(0),
            window: AtomicI64::new(FIRST_WINDOW),
            most: AtomicUsize::new(MOST_STREAMS),
            replies: Mutex::default(),
            is_lost: AtomicBool::new(false),
            answers: Arc::clone(answers),
        });
        let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame(&mut out, SETTINGS, 0, 0, &[]);
        // The largest window, so that answers need no further grants.
        frame(&mut out, WINDOW, 0, 0, &0x7fff_0000_u32.to_be_bytes());
        let receiver = Receiver {
            stream: stream.try_clone()?,
            shared: Arc::clone(&shared),
            answers: vec![Answer::Failed; SLOTS],
            latencies: Vec::new(),
        };
        let mut connection = Self {
            stream,
            shared,
            protocol,
            next: 1,
            out,
        };
        connection.flush()?;
        Ok((connection, receiver))
    }

    /// Returns whether another request may be sent, with at most so many in flight.
    pub(crate) fn has_room(&self, most: usize) -> bool {
        let most = most.min(self.shared.most.load(Ordering::Relaxed));
        !self.is_lost()
            && self.shared.in_flight.load(Ordering::Relaxed) < most
            && self.shared.window.load(Ordering::Relaxed) > 2_000
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.shared.is_lost.load(Ordering::Relaxed)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.is_lost() || self.shared.in_flight.load(Ordering::Relaxed) == 0
    }

    /// Adds a request that was planned for this time after the beginning.
    pub(crate) fn push(&mut self, planned: Duration, value: &[u8]) {
        let shared = &*self.shared;
        let micros = u32::try_from(planned.as_micros()).unwrap_or(u32::MAX);
        shared.slot(self.next).store(micros, Ordering::Relaxed);
        shared.in_flight.fetch_add(1, Ordering::Relaxed);
        let mut fields = fields(self.protocol, self.next == 1);
        match self.protocol {
            Protocol::Grpc => {
                frame(&mut self.out, HEADERS, END_HEADERS, self.next, &fields);
                let mut data = vec![0];
                data.extend_from_slice(&u32::try_from(value.len()).unwrap_or(0).to_be_bytes());
                data.extend_from_slice(value);
                shared
                    .window
                    .fetch_sub(data.len() as i64, Ordering::Relaxed);
                frame(&mut self.out, DATA, END, self.next, &data);
            }
            Protocol::Http => {
                fields.push(0);
                push_text(&mut fields, b"x-user");
                push_text(&mut fields, value);
                frame(
                    &mut self.out,
                    HEADERS,
                    END_HEADERS | END,
                    self.next,
                    &fields,
                );
            }
        }
        self.next += 2;
    }

    /// Sends the added requests.
    pub(crate) fn flush(&mut self) -> Outcome {
        let mut replies = self
            .shared
            .replies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.out.append(&mut replies);
        drop(replies);
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Ends the connection, so that the receiver ends.
    pub(crate) fn close(self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// The receiving half.
pub(crate) struct Receiver {
    stream: TcpStream,
    shared: Arc<Shared>,
    /// The answer of each stream in flight, which comes before the end of the stream.
    answers: Vec<Answer>,
    latencies: Vec<u32>,
}

impl Receiver {
    /// Reads until the connection ends. Returns the microseconds of the answers to requests that were planned after the
    /// warm-up.
    pub(crate) fn run(mut self, protocol: Protocol, warm_up: Duration) -> Vec<u32> {
        let mut bytes = vec![0; 1 << 17];
        let mut filled = 0;
        while let Ok(read @ 1..) = self.stream.read(&mut bytes[filled..]) {
            filled += read;
            let mut parsed = 0;
            while let Some(length) = whole_frame(&bytes[parsed..filled]) {
                self.frame(&bytes[parsed..parsed + length], protocol, warm_up);
                parsed += length;
            }
            bytes.copy_within(parsed..filled, 0);
            filled -= parsed;
        }
        self.shared.is_lost.store(true, Ordering::Relaxed);
        self.latencies
    }

    fn frame(&mut self, frame: &[u8], protocol: Protocol, warm_up: Duration) {
        let (kind, flags, payload) = (frame[3], frame[4], &frame[9..]);
        let stream = number(&frame[5..9]);
        match (kind, protocol) {
            // The message follows five bytes, and begins with the overall code.
            (DATA, Protocol::Grpc) => match payload.get(5..7) {
                Some([8, 1]) => self.answers[slot(stream)] = Answer::Admitted,
                Some([8, 2]) => self.answers[slot(stream)] = Answer::Refused,
                _ => {}
            },
            // The first field is the status, which is 200 if its byte is 0x88.
            (HEADERS, Protocol::Http) => {
                self.answers[slot(stream)] = match payload.first() {
                    Some(0x88) => Answer::Admitted,
                    _ => Answer::Refused,
                };
            }
            (RESET, _) => self.answers[slot(stream)] = Answer::Failed,
            (WINDOW, _) if stream == 0 => {
                let more = i64::from(number(payload));
                self.shared.window.fetch_add(more, Ordering::Relaxed);
            }
            (SETTINGS, _) if flags & END == 0 => self.settings(payload),
            (PING, _) if flags & END == 0 => self.reply(PING, payload),
            (GO_AWAY, _) => self.shared.is_lost.store(true, Ordering::Relaxed),
            _ => {}
        }
        let is_end = matches!(kind, DATA | HEADERS) && flags & END != 0 || kind == RESET;
        if is_end && stream > 0 {
            self.end(stream, warm_up);
        }
    }

    fn end(&mut self, stream: u32, warm_up: Duration) {
        let planned =
            Duration::from_micros(self.shared.slot(stream).load(Ordering::Relaxed).into());
        let answer = mem::take(&mut self.answers[slot(stream)]);
        self.shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.shared.answers.count(answer);
        if planned < warm_up {
            return;
        }
        let latency = (now() - self.shared.began).saturating_sub(planned);
        let micros = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        self.latencies.push(micros);
    }

    fn settings(&self, payload: &[u8]) {
        for setting in payload.chunks_exact(6) {
            // The most streams at the same time.
            if setting[..2] == [0, 3] {
                let most = number(&setting[2..]) as usize;
                self.shared
                    .most
                    .store(most.min(SLOTS / 2), Ordering::Relaxed);
            }
        }
        self.reply(SETTINGS, &[]);
    }

    fn reply(&self, kind: u8, payload: &[u8]) {
        let mut replies = self
            .shared
            .replies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        frame(&mut replies, kind, END, 0, payload);
    }
}

/// Returns the fields of a request in HPACK. The first request fills the dynamic table, and later ones name its entries.
fn fields(protocol: Protocol, is_first: bool) -> Vec<u8> {
    const PATH: &[u8] = b"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    let mut fields = Vec::with_capacity(128);
    match (protocol, is_first) {
        (Protocol::Grpc, false) => fields.extend([0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe]),
        (Protocol::Http, false) => fields.extend([0x82, 0x86, 0x84, 0xbe]),
        (Protocol::Grpc, true) => {
            fields.extend([0x83, 0x86, 0x44]);
            push_text(&mut fields, PATH);
            fields.push(0x41);
            push_text(&mut fields, b"limits");
            fields.push(0x40);
            push_text(&mut fields, b"te");
            push_text(&mut fields, b"trailers");
            fields.push(0x5f);
            push_text(&mut fields, b"application/grpc");
        }
        (Protocol::Http, true) => {
            fields.extend([0x82, 0x86, 0x84, 0x41]);
            push_text(&mut fields, b"front");
        }
    }
    fields
}

/// Appends a text of less than 127 bytes with its length.
fn push_text(fields: &mut Vec<u8>, text: &[u8]) {
    fields.push(text.len() as u8);
    fields.extend_from_slice(text);
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    out.extend_from_slice(&length[1..]);
    out.extend([kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Returns the length of the first frame, if it is complete.
fn whole_frame(bytes: &[u8]) -> Option<usize> {
    let length = number(bytes.get(..3)?) as usize + 9;
    (bytes.len() >= length).then_some(length)
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, byte| (number << 8) | u32::from(*byte))
}
