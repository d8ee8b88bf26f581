//! A TCP proxy that carries a bounded number of bytes a second.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Small pieces let connections take turns.
const PIECE: usize = 1024;
/// The pause between two reads of the rate while it is 0.
const POLL: Duration = Duration::from_millis(5);

/// A proxy with a bounded rate of request bytes, shared by all its connections.
///
/// Bytes beyond that wait, as on a server that is too slow for its clients: work for clients that have given up is
/// still done. The rate does not depend on this machine's load, so a test can measure the useful share of it.
///
/// ```no_run
/// use tower_quota_testkit::{RedisServer, SlowLink};
///
/// let server = RedisServer::start();
/// let link = SlowLink::to(server.port(), 400_000);
/// // ... ask for more decisions through link.url() than it carries ...
/// ```
#[derive(Debug)]
pub struct SlowLink {
    port: u16,
    shared: Arc<LinkState>,
}

#[derive(Debug)]
struct LinkState {
    target: u16,
    bytes_per_second: AtomicU64,
    /// The instant at which the link is free for the next piece.
    free_at: Mutex<Instant>,
    is_over: AtomicBool,
}

impl SlowLink {
    /// Starts a link to a port on 127.0.0.1.
    ///
    /// # Panics
    /// When no port can be listened on.
    #[must_use]
    #[expect(clippy::panic, clippy::disallowed_methods, reason = "documented; a rate in real time")]
    pub fn to(target: u16, bytes_per_second: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| {
            let port = listener.local_addr()?.port();
            Ok((listener, port))
        });
        let (listener, port) = match listener {
            Ok(listening) => listening,
            Err(error) => panic!("no port for a link: {error}"),
        };
        let shared = Arc::new(LinkState {
            target,
            bytes_per_second: AtomicU64::new(bytes_per_second),
            free_at: Mutex::new(Instant::now()),
            is_over: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Self { port, shared }
    }

    /// Returns `redis://127.0.0.1:PORT/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Sets the rate from now on. Nothing passes at a rate of 0.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.shared.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn accept(listener: &TcpListener, shared: &Arc<LinkState>) {
    for client in listener.incoming().flatten() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let _ = join(shared, client);
    }
}

fn join(shared: &Arc<LinkState>, client: TcpStream) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", shared.target))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client_reads, mut server_reads) = (client.try_clone()?, server.try_clone()?);
    let shared = Arc::clone(shared);
    thread::spawn(move || pass_requests(&shared, client_reads, server));
    thread::spawn(move || {
        let mut client = client;
        let _ = io::copy(&mut server_reads, &mut client);
        let _ = client.shutdown(Shutdown::Both);
    });
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a rate in real time")]
fn pass_requests(shared: &LinkState, mut client: TcpStream, mut server: TcpStream) {
    let mut bytes = [0; PIECE];
    while let Ok(read @ 1..) = client.read(&mut bytes) {
        let mut rate = shared.bytes_per_second.load(Ordering::Relaxed);
        while rate == 0 && !shared.is_over.load(Ordering::SeqCst) {
            thread::sleep(POLL);
            rate = shared.bytes_per_second.load(Ordering::Relaxed);
        }
        let takes = Duration::from_nanos(read as u64 * 1_000_000_000 / rate.max(1));
        let carried_at = {
            let mut free_at = shared.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            *free_at = (*free_at).max(Instant::now()) + takes;
            *free_at
        };
        thread::sleep(carried_at.saturating_duration_since(Instant::now()));
        if server.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}
