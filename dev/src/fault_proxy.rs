//! A TCP proxy that injects faults.

mod pipe;

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::wait::wait_until;

/// A proxy between a client and a server on this machine that injects network faults.
///
/// It forwards all bytes until a fault is injected. When dropped, it closes its port and all connections.
///
/// ```no_run
/// use tower_quota_dev::{Fault, FaultProxy, RedisServer};
///
/// let server = RedisServer::start();
/// let proxy = FaultProxy::to(server.port());
/// // ... connect a store to proxy.url() ...
/// proxy.inflict(Fault::Stall);
/// // ... assert that every call ends at its deadline ...
/// proxy.heal();
/// ```
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    shared: Arc<Shared>,
}

/// A network fault that a [`FaultProxy`] injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Connections are accepted, and no byte passes in either direction. The bytes are delivered after healing, as
    /// after a partition.
    Stall,
    /// Requests arrive and are executed. Replies are delivered after healing.
    Mute,
    /// Each reply arrives this much later.
    Delay(Duration),
    /// This many more bytes of replies pass, on all connections together. Then all connections are cut, once, and the
    /// proxy has healed.
    CutAfter(usize),
    /// Connections are cut, and new ones are closed at once.
    Refuse,
    /// New connections pass their first byte only this much later. Existing connections work.
    SlowStart(Duration),
    /// Requests pass at this many bytes a second, on all connections together.
    ///
    /// They pass in the order in which they come, as on a server that is too slow for its clients: work for clients that
    /// have given up is still done. The rate does not depend on this machine's load, so the useful share of it can be
    /// measured.
    Slow(u64),
}

#[derive(Debug)]
struct Shared {
    state: Mutex<ProxyState>,
    changed: Condvar,
}

#[derive(Debug)]
struct ProxyState {
    target: u16,
    fault: Option<Fault>,
    made: usize,
    /// The instant at which the requests that were read so far have passed.
    passed_at: Instant,
    /// Both sockets of every open connection, by its number, to cut them.
    open: HashMap<usize, [TcpStream; 2]>,
    is_over: bool,
}

impl FaultProxy {
    /// Starts a proxy in front of a port on 127.0.0.1.
    ///
    /// # Panics
    /// Panics when it cannot listen on any port.
    #[must_use]
    #[expect(clippy::panic, reason = "documented: without a proxy there is no test")]
    pub fn to(target: u16) -> Self {
        match TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| Self::start(listener, target, None))
        {
            Ok(proxy) => proxy,
            Err(error) => panic!("no port for a proxy: {error}"),
        }
    }

    /// Starts a proxy on the port of a server that has ended. It refuses connections, and counts them.
    ///
    /// # Panics
    /// Panics when the port stays taken for 30 s.
    #[must_use]
    #[expect(clippy::panic, reason = "documented: without a proxy there is no test")]
    pub fn in_place_of(port: u16) -> Self {
        let mut proxy = None;
        // A connection may use the port on its client side for a moment.
        wait_until("a port is free again", || {
            let listener = TcpListener::bind(("127.0.0.1", port));
            proxy = listener
                .and_then(|listener| Self::start(listener, port, Some(Fault::Refuse)))
                .ok();
            proxy.is_some()
        });
        match proxy {
            Some(proxy) => proxy,
            None => panic!("no proxy on port {port}"),
        }
    }

    /// Accepts connections in a thread, until the proxy is dropped.
    fn start(listener: TcpListener, target: u16, fault: Option<Fault>) -> io::Result<Self> {
        let port = listener.local_addr()?.port();
        #[expect(
            clippy::disallowed_methods,
            reason = "a rate in real time is what the proxy is for"
        )]
        let passed_at = Instant::now();
        let state = ProxyState {
            target,
            fault,
            made: 0,
            passed_at,
            open: HashMap::new(),
            is_over: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let listening = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &listening));
        Ok(Self { port, shared })
    }

    /// Returns the port on 127.0.0.1 to connect to instead of the server's.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL, `redis://127.0.0.1:PORT/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Injects this fault from now on, into existing and new connections.
    pub fn inflict(&self, fault: Fault) {
        let mut state = self.shared.lock();
        state.fault = Some(fault);
        if fault == Fault::Refuse {
            state.cut();
        }
        self.shared.changed.notify_all();
    }

    /// Ends the fault, and forwards the bytes that it held back.
    pub fn heal(&self) {
        self.shared.lock().fault = None;
        self.shared.changed.notify_all();
    }

    /// Leads to another port on 127.0.0.1 from now on, as an address does after a failover. Existing connections are cut.
    pub fn redirect(&self, target: u16) {
        let mut state = self.shared.lock();
        state.target = target;
        state.cut();
    }

    /// Cuts the existing connections. The fault, if any, applies to new ones.
    pub fn cut(&self) {
        self.shared.lock().cut();
    }

    /// Returns the present fault, or `None` once the proxy has healed.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.shared.lock().fault
    }

    /// Returns how many connections have been accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().made
    }

    /// Returns how many connections are open.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.shared.lock().open.len()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        state.fault = None;
        state.cut();
        self.shared.changed.notify_all();
        drop(state);
        // This wakes the thread that accepts. It then closes the port and ends.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the fault is one that holds bytes back.
    fn wait_to_pass(&self, holds: impl Fn(Fault) -> bool) -> MutexGuard<'_, ProxyState> {
        let mut state = self.lock();
        while state.fault.is_some_and(&holds) {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state
    }
}

/// Removes a connection from the open ones when the last thread that serves it ends.
#[derive(Debug)]
struct OpenConnection {
    shared: Arc<Shared>,
    number: usize,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.shared.lock().open.remove(&self.number);
    }
}

impl ProxyState {
    /// Returns how long a request of this many bytes has to wait until it has passed.
    #[expect(
        clippy::disallowed_methods,
        reason = "a rate in real time is what the proxy is for"
    )]
    fn time_to_pass(&mut self, bytes: usize) -> Duration {
        let Some(Fault::Slow(rate)) = self.fault else {
            return Duration::ZERO;
        };
        let now = Instant::now();
        self.passed_at = self.passed_at.max(now)
            + Duration::from_nanos(bytes as u64 * 1_000_000_000 / rate.max(1));
        self.passed_at - now
    }

    fn cut(&mut self) {
        for stream in self.open.drain().flat_map(|(_, ends)| ends) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming().flatten() {
        let mut state = shared.lock();
        if state.is_over {
            return;
        }
        state.made += 1;
        if state.fault == Some(Fault::Refuse) {
            continue;
        }
        // To the client, a server that is down looks like one that closes the connection.
        let Ok(server) = TcpStream::connect(("127.0.0.1", state.target)) else {
            continue;
        };
        if let (Ok(client_end), Ok(server_end)) = (client.try_clone(), server.try_clone()) {
            let number = state.made;
            state.open.insert(number, [client_end, server_end]);
            let start = match state.fault {
                Some(Fault::SlowStart(delay)) => delay,
                _ => Duration::ZERO,
            };
            drop(state);
            let connection = OpenConnection {
                shared: Arc::clone(shared),
                number,
            };
            let _ = pipe::join(connection, client, server, start);
        }
    }
}
