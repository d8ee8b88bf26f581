//! A TCP proxy that misbehaves on request.

mod pipe;

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::wait::wait_until;

/// A proxy between a client and a server on this machine, through which the network between them can be made to fail
/// in known ways. It passes everything on until told otherwise, and ends with all its connections when dropped.
///
/// ```no_run
/// use tower_quota_testkit::{Fault, FaultProxy, RedisServer};
///
/// let server = RedisServer::start();
/// let proxy = FaultProxy::to(server.port());
/// // ... connect a store to proxy.url() ...
/// proxy.inflict(Fault::Stall);
/// // ... see that every call ends at its deadline ...
/// proxy.heal();
/// ```
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    shared: Arc<Shared>,
}

/// What a [`FaultProxy`] does to the bytes that pass through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Connections are accepted, and no byte passes in either direction. What is held back is delivered after healing,
    /// as after a partition.
    Stall,
    /// Requests arrive, and replies are held back in the same way: the server does what it is told, and nobody hears.
    Mute,
    /// Each reply arrives this much later.
    Delay(Duration),
    /// This many more bytes of replies pass, on all connections together. Then all connections are cut, and the proxy
    /// has healed: a fault that happens once.
    CutAfter(usize),
    /// Connections are cut, and new ones are closed as soon as they are made.
    Refuse,
    /// New connections are accepted, and pass their first byte only this much later. Those there are work.
    SlowStart(Duration),
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    target: u16,
    fault: Option<Fault>,
    made: usize,
    /// Both ends of every connection, to cut them.
    open: Vec<TcpStream>,
    is_over: bool,
}

impl FaultProxy {
    /// A proxy in front of a port on 127.0.0.1.
    ///
    /// # Panics
    /// When no port can be listened on.
    #[must_use]
    #[expect(clippy::panic, reason = "documented: without a proxy there is no test")]
    pub fn to(target: u16) -> Self {
        match TcpListener::bind("127.0.0.1:0").and_then(|listener| Self::start(listener, target, None)) {
            Ok(proxy) => proxy,
            Err(error) => panic!("no port for a proxy: {error}"),
        }
    }

    /// One that takes the place of a server that is gone, to count who looks for it there, and refuses connections.
    ///
    /// # Panics
    /// When the port stays taken for 30 s.
    #[must_use]
    #[expect(clippy::panic, reason = "documented: without a proxy there is no test")]
    pub fn in_place_of(gone: u16) -> Self {
        let mut proxy = None;
        // Another connection may have it for a moment, as its own end.
        wait_until("a port is free again", || {
            let listener = TcpListener::bind(("127.0.0.1", gone));
            proxy = listener.and_then(|listener| Self::start(listener, gone, Some(Fault::Refuse))).ok();
            proxy.is_some()
        });
        match proxy {
            Some(proxy) => proxy,
            None => panic!("no proxy on port {gone}"),
        }
    }

    /// Accepts in a thread of its own, until it is over.
    fn start(listener: TcpListener, target: u16, fault: Option<Fault>) -> io::Result<Self> {
        let port = listener.local_addr()?.port();
        let state = State { target, fault, made: 0, open: Vec::new(), is_over: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let listening = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &listening));
        Ok(Self { port, shared })
    }

    /// The port on 127.0.0.1 to connect to instead of the server's.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `redis://127.0.0.1:PORT/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Misbehaves in this way from now on, on connections that exist and on new ones.
    pub fn inflict(&self, fault: Fault) {
        let mut state = self.shared.lock();
        state.fault = Some(fault);
        if fault == Fault::Refuse {
            state.cut();
        }
        self.shared.changed.notify_all();
    }

    /// Passes everything on from now on, first what was held back.
    pub fn heal(&self) {
        self.shared.lock().fault = None;
        self.shared.changed.notify_all();
    }

    /// Cuts the connections there are. New ones fare as the fault says.
    pub fn cut(&self) {
        self.shared.lock().cut();
    }

    /// How it misbehaves at the moment: `None` once it has healed.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.shared.lock().fault
    }

    /// How many connections have been accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().made
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
        // The thread that accepts wakes up, sees that it is over, and lets the port go.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault, once it is one that lets bytes pass.
    fn wait_to_pass(&self, holds: impl Fn(Fault) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while state.fault.is_some_and(&holds) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }
}

impl State {
    fn cut(&mut self) {
        for stream in self.open.drain(..) {
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
        // A server that is away looks to the client like one that hangs up.
        let Ok(server) = TcpStream::connect(("127.0.0.1", state.target)) else { continue };
        if let (Ok(client_end), Ok(server_end)) = (client.try_clone(), server.try_clone()) {
            state.open.extend([client_end, server_end]);
            let start = match state.fault {
                Some(Fault::SlowStart(delay)) => delay,
                _ => Duration::ZERO,
            };
            drop(state);
            let _ = pipe::join(shared, client, server, start);
        }
    }
}
