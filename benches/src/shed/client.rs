//! Clients that do not wait for each other, over connections that stay open.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::turns::{now, rest};

/// A client gives up after this time.
const PATIENCE: Duration = Duration::from_secs(1);
/// More connections than this count as refused.
const CONNECTIONS: usize = 4_000;

/// Requests of one kind.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    /// Requests a second.
    pub(crate) rate: f64,
    /// A header field with the line end, or nothing.
    pub(crate) field: &'static str,
}

/// What became of a request.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    /// The index of the stream.
    pub(crate) stream: usize,
    /// When the request should leave, in seconds.
    pub(crate) at: f64,
    /// Seconds until the answer.
    pub(crate) took: f64,
    /// The status, or 0 without an answer.
    pub(crate) status: u16,
}

/// Sends streams of requests to a server, at random times that do not depend on the answers.
pub(crate) async fn send(server: SocketAddr, streams: &[Stream], span: f64) -> Vec<Sent> {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut plan = Vec::new();
    for (stream, Stream { rate, .. }) in streams.iter().enumerate() {
        let mut at = 0.0;
        loop {
            at -= (1.0 - rng.f64()).ln() / rate;
            if at >= span {
                break;
            }
            plan.push((at, stream));
        }
    }
    plan.sort_by(|one, two| one.0.total_cmp(&two.0));
    let idle = Arc::new(Mutex::new(Vec::new()));
    let open = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    let (answers, mut answered) = mpsc::unbounded_channel();
    let began = now();
    for (at, stream) in plan {
        let until = Duration::from_secs_f64(at).saturating_sub(began.elapsed());
        if until > Duration::from_millis(1) {
            rest(until).await;
        }
        let (idle, open, answers) = (Arc::clone(&idle), Arc::clone(&open), answers.clone());
        let field = streams[stream].field;
        tokio::spawn(async move {
            let mut status = 0;
            if let Ok(_permit) = open.try_acquire() {
                let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let exchange = timeout(PATIENCE, exchange(server, kept, field)).await;
                if let Ok(Ok((connection, answer))) = exchange {
                    status = answer;
                    let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
                    idle.push(connection);
                }
            }
            let took = began.elapsed().as_secs_f64() - at;
            // The receiver lives until all senders are dropped.
            _ = answers.send(Sent {
                stream,
                at,
                took,
                status,
            });
        });
    }
    drop(answers);
    let mut sent = Vec::new();
    while let Some(answer) = answered.recv().await {
        sent.push(answer);
    }
    sent
}

/// Sends one request, and reads the whole answer.
async fn exchange(
    server: SocketAddr,
    kept: Option<TcpStream>,
    field: &str,
) -> io::Result<(TcpStream, u16)> {
    let mut connection = match kept {
        Some(connection) => connection,
        None => TcpStream::connect(server).await?,
    };
    connection.set_nodelay(true)?;
    let request = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{field}\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        if connection.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            let status = head.get(9..12).and_then(|status| status.parse().ok());
            return Ok((connection, status.unwrap_or(0)));
        }
    }
}

/// Returns the answers a second that came within `useful` seconds, of requests from `from` to `to`.
pub(crate) fn goodput(sent: &[Sent], from: f64, to: f64, useful: f64) -> f64 {
    let is_good =
        |sent: &&Sent| (from..to).contains(&sent.at) && sent.status == 200 && sent.took <= useful;
    sent.iter().filter(is_good).count() as f64 / (to - from)
}

/// Returns the 99th percentile of the latency of answered requests, in milliseconds.
pub(crate) fn p99(sent: &[Sent], from: f64) -> f64 {
    let answered = sent
        .iter()
        .filter(|sent| sent.at >= from && sent.status == 200);
    let mut latencies: Vec<f64> = answered.map(|sent| sent.took * 1e3).collect();
    latencies.sort_by(f64::total_cmp);
    let last = latencies.len().saturating_sub(1);
    latencies
        .get(last.min(latencies.len() * 99 / 100))
        .copied()
        .unwrap_or_default()
}
