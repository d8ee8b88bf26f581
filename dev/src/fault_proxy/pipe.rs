//! One connection through the proxy: a thread for requests and two for replies, so that delays do not add up.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::{Fault, OpenConnection, Shared};

/// Requests are read in small pieces, so that connections take turns where they pass slowly.
const PIECE: usize = 1024;

/// Forwards bytes between a client and a server until either closes. The first request waits for `start`.
pub(super) fn join(
    connection: OpenConnection,
    client: TcpStream,
    server: TcpStream,
    start: Duration,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let requests = Arc::new(connection);
    let [timing, replies] = [Arc::clone(&requests), Arc::clone(&requests)];
    let (client_reads, server_reads) = (client.try_clone()?, server.try_clone()?);
    let (late, due) = mpsc::channel();
    thread::spawn(move || forward_requests(&requests.shared, client_reads, server, start));
    thread::spawn(move || {
        time_replies(server_reads, &late);
        drop((late, timing));
    });
    thread::spawn(move || forward_replies(&replies.shared, &due, client));
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a delay in real time is what the proxy is for"
)]
fn forward_requests(
    shared: &Shared,
    mut client: TcpStream,
    mut server: TcpStream,
    start: Duration,
) {
    thread::sleep(start);
    let mut bytes = [0; PIECE];
    while let Ok(read @ 1..) = client.read(&mut bytes) {
        let time_to_pass = shared
            .wait_to_pass(|fault| fault == Fault::Stall)
            .time_to_pass(read);
        thread::sleep(time_to_pass);
        if server.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

/// Reads replies and the instants at which they arrive.
#[expect(
    clippy::disallowed_methods,
    reason = "a delay in real time is what the proxy is for"
)]
fn time_replies(mut server: TcpStream, late: &mpsc::Sender<(Instant, Vec<u8>)>) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(read @ 1..) = server.read(&mut bytes) {
        if late.send((Instant::now(), bytes[..read].to_vec())).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

fn forward_replies(
    shared: &Shared,
    due: &mpsc::Receiver<(Instant, Vec<u8>)>,
    mut client: TcpStream,
) {
    for (came, mut reply) in due {
        let mut state = shared.wait_to_pass(|fault| matches!(fault, Fault::Stall | Fault::Mute));
        let mut is_cut = false;
        match state.fault {
            Some(Fault::Delay(delay)) => {
                drop(state);
                sleep_until(came, delay);
            }
            Some(Fault::CutAfter(left)) if reply.len() < left => {
                state.fault = Some(Fault::CutAfter(left - reply.len()));
                drop(state);
            }
            Some(Fault::CutAfter(left)) => {
                reply.truncate(left);
                is_cut = true;
                state.fault = None;
                let _ = client.write_all(&reply);
                state.cut();
            }
            _ => drop(state),
        }
        if is_cut || client.write_all(&reply).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

#[expect(
    clippy::disallowed_methods,
    reason = "a delay in real time is what the proxy is for"
)]
fn sleep_until(came: Instant, delay: Duration) {
    thread::sleep(delay.saturating_sub(came.elapsed()));
}
