//! Tests of the servers and the fault proxy.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tower_quota_dev::{Fault, FaultProxy, RedisCluster, RedisSentinel, RedisServer};

/// The time in which a blocked reply must not arrive.
const QUIET_TIME: Duration = Duration::from_millis(200);
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn client(proxy: &FaultProxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

fn pong(stream: &mut TcpStream) -> std::io::Result<String> {
    stream.write_all(b"PING\r\n")?;
    let mut reply = [0; 7];
    stream.read_exact(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

#[test]
fn stall_holds_bytes_until_healed() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut stream = client(&proxy);
    assert_eq!(pong(&mut stream).unwrap(), "+PONG\r\n");
    for fault in [Fault::Stall, Fault::Mute] {
        proxy.inflict(fault);
        stream.set_read_timeout(Some(QUIET_TIME)).unwrap();
        assert!(pong(&mut stream).is_err(), "{fault:?}");
        proxy.heal();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut late = [0; 7];
        stream.read_exact(&mut late).unwrap();
        assert_eq!(&late, b"+PONG\r\n");
    }
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn muted_server_still_executes_requests() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut stream = client(&proxy);
    proxy.inflict(Fault::Mute);
    stream.write_all(b"SET heard yes\r\n").unwrap();
    while !server.command("GET heard").unwrap().contains("yes") {}
}

#[test]
fn late_reply_is_never_early() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut stream = client(&proxy);
    // At fifteen a second, six bytes take as long as the delay.
    for fault in [Fault::Delay(2 * QUIET_TIME), Fault::Slow(15)] {
        proxy.inflict(fault);
        stream.set_read_timeout(Some(QUIET_TIME)).unwrap();
        assert!(pong(&mut stream).is_err(), "{fault:?}");
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut late = [0; 7];
        stream.read_exact(&mut late).unwrap();
    }
}

#[test]
fn cut_after_passes_bytes_and_cuts_once() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut stream = client(&proxy);
    proxy.inflict(Fault::CutAfter(10));
    assert_eq!(pong(&mut stream).unwrap(), "+PONG\r\n");
    stream.write_all(b"PING\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(rest, b"+PO");
    assert_eq!(pong(&mut client(&proxy)).unwrap(), "+PONG\r\n");
}

#[test]
fn refusal_closes_old_and_new_connections() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut stream = client(&proxy);
    assert_eq!(pong(&mut stream).unwrap(), "+PONG\r\n");
    proxy.inflict(Fault::Refuse);
    assert!(pong(&mut stream).is_err());
    assert!(pong(&mut client(&proxy)).is_err());
    proxy.heal();
    assert_eq!(pong(&mut client(&proxy)).unwrap(), "+PONG\r\n");
}

#[test]
fn paused_server_answers_after_resume() {
    let server = RedisServer::start();
    server.pause();
    assert!(server.command("PING").is_err());
    server.resume();
    while server.command("PING").is_err() {}
}

#[test]
fn cluster_fails_over_and_moves_slots() {
    let mut cluster = RedisCluster::start();
    let slot = cluster.slot("{tag}key");
    let owner = cluster.owner(slot).unwrap();
    assert!(
        owner < 3
            && cluster
                .node(owner)
                .command("SET {tag}key value")
                .unwrap()
                .starts_with("+OK")
    );

    let other = (owner + 1) % 3;
    cluster.move_slot(slot, other);
    assert_eq!(cluster.owner(slot), Some(other));
    assert!(
        cluster
            .node(other)
            .command("GET {tag}key")
            .unwrap()
            .contains("value")
    );

    // The replica must have the key before its primary is killed.
    cluster.node(other).command("WAIT 1 10000").unwrap();
    cluster.kill(other);
    cluster.wait_for_promotion(slot, other);
    assert_eq!(cluster.owner(slot), Some(other + 3));
}

#[test]
fn sentinels_promote_the_replica() {
    let mut group = RedisSentinel::start();
    assert_eq!(group.urls().len(), 3);
    group.kill(0);
    group.wait_for_promotion(1);
    assert!(
        group
            .server(1)
            .command("SET key value")
            .unwrap()
            .starts_with("+OK")
    );
}

#[test]
fn reply_outside_utf8_is_readable() {
    let server = RedisServer::start();
    assert_eq!(server.command(r#"SET key "a\xff\xfe""#).unwrap(), "+OK\r\n");
    assert_eq!(
        server.command("GET key").unwrap(),
        "$3\r\na\u{fffd}\u{fffd}\r\n"
    );
}

#[test]
fn closed_connections_are_not_kept() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    for _ in 0..5 {
        let mut closing = client(&proxy);
        assert_eq!(pong(&mut closing).unwrap(), "+PONG\r\n");
    }
    let mut staying = client(&proxy);
    assert_eq!(pong(&mut staying).unwrap(), "+PONG\r\n");
    while proxy.open_connections() > 1 {}
    assert_eq!(pong(&mut staying).unwrap(), "+PONG\r\n");
    drop(staying);
    while proxy.open_connections() > 0 {}
    assert_eq!(proxy.connections(), 6);
}

#[test]
fn cut_closes_all_open_connections() {
    let server = RedisServer::start();
    let proxy = FaultProxy::to(server.port());
    let mut streams = [client(&proxy), client(&proxy)];
    for stream in &mut streams {
        assert_eq!(pong(stream).unwrap(), "+PONG\r\n");
    }
    assert_eq!(proxy.open_connections(), 2);
    proxy.cut();
    assert_eq!(proxy.open_connections(), 0);
    for stream in &mut streams {
        assert!(pong(stream).is_err());
    }
}
