//! A server and a client over a real connection.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;

use clap::Parser;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower_quota_server::messages::ratelimit::rate_limit_service_client::RateLimitServiceClient;
use tower_quota_server::options::Options;
use tower_quota_server::serve::BoundServer;

use crate::support::{path, request, shown};

fn options(flags: &[&OsStr]) -> Options {
    let flags = [
        "tower-quota-server",
        "--grpc-host",
        "127.0.0.1",
        "--grpc-port",
        "0",
        "--http",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--drain-delay",
        "0s",
    ]
    .map(OsStr::new)
    .into_iter()
    .chain(flags.iter().copied());
    Options::try_parse_from(flags).unwrap()
}

/// A running server, and what ends it.
struct Running {
    address: SocketAddr,
    end: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

async fn start(folder: &Path) -> Running {
    let server = BoundServer::bind(&options(&["--envoy".as_ref(), folder.as_os_str()]))
        .await
        .unwrap();
    let (end, signal) = oneshot::channel();
    Running {
        address: server.grpc_address(),
        end,
        ended: tokio::spawn(server.run(async {
            let _ = signal.await;
        })),
    }
}

async fn connect(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}"))
        .unwrap()
        .connect()
        .await
        .unwrap()
}

#[tokio::test]
async fn client_gets_decisions_until_the_signal() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(
        path("limits/service.yaml"),
        folder.path().join("service.yaml"),
    )
    .unwrap();
    let server = start(folder.path()).await;
    let channel = connect(server.address).await;
    let mut client = RateLimitServiceClient::new(channel.clone());
    let mut remaining = Vec::new();
    for _ in 0..3 {
        let response = client
            .should_rate_limit(request("service", &["two=x"]))
            .await
            .unwrap();
        let response = response.into_inner();
        remaining.push((
            shown(&response)[0].clone(),
            response.statuses[0].limit_remaining,
        ));
    }
    assert_eq!(
        remaining,
        [("OK".into(), 1), ("OK".into(), 0), ("OVER".into(), 0)]
    );

    let status = client
        .should_rate_limit(request("", &["two=x"]))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let long = format!("two={}", "x".repeat(300_000));
    let status = client
        .should_rate_limit(request("service", &[&long]))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");

    let mut health = HealthClient::new(channel);
    for service in ["", "envoy.service.ratelimit.v3.RateLimitService"] {
        let service = service.to_owned();
        let response = health.check(HealthCheckRequest { service }).await.unwrap();
        assert_eq!(response.into_inner().status, 1);
    }
    let watched = HealthCheckRequest::default();
    let mut statuses = health.watch(watched).await.unwrap().into_inner();
    assert_eq!(statuses.message().await.unwrap().unwrap().status, 1);
    server.end.send(()).unwrap();
    // The server is unhealthy before it closes the connection.
    assert_eq!(statuses.message().await.unwrap().unwrap().status, 2);
    drop((statuses, health, client));
    server.ended.await.unwrap();
}

#[tokio::test]
async fn unusable_options_name_the_flag() {
    let error = |flags: Vec<&'static OsStr>| async move {
        BoundServer::bind(&options(&flags))
            .await
            .unwrap_err()
            .to_string()
    };
    assert!(error(vec![]).await.contains("--envoy PATH"));
    let message = error(vec!["--envoy".as_ref(), "nowhere".as_ref()]).await;
    assert!(
        message.contains("nowhere: ") && message.contains("check the path"),
        "{message}"
    );
    let good: &'static OsStr = path("limits").into_os_string().leak();
    let message = error(vec![
        "--envoy".as_ref(),
        good,
        "--redis".as_ref(),
        "redis://:port".as_ref(),
    ])
    .await;
    assert!(message.starts_with("--redis (REDIS_URL): "), "{message}");
    let message = error(vec![
        "--envoy".as_ref(),
        good,
        "--grpc".as_ref(),
        "192.0.2.1:0".as_ref(),
    ])
    .await;
    assert!(message.contains("--grpc 192.0.2.1:0: "), "{message}");
}

#[tokio::test]
async fn summary_has_limits_and_store() {
    let folder = path("limits");
    let server = BoundServer::bind(&options(&["--envoy".as_ref(), folder.as_os_str()]))
        .await
        .unwrap();
    let summary = server.summary();
    assert!(
        summary.contains("(domains: 6, limits: ") && summary.ends_with("counted in memory"),
        "{summary}"
    );
}

#[test]
fn folders_of_the_reference_are_read() {
    let read = |flags: &[&str]| options(&flags.iter().map(OsStr::new).collect::<Vec<_>>());
    let root = read(&[
        "--runtime-root",
        "/data",
        "--runtime-subdirectory",
        "ratelimit",
    ]);
    let folder = root.envoy.folder().unwrap();
    assert_eq!(folder, Path::new("/data/ratelimit/config"));
    let both = read(&["--runtime-root", "/data", "--envoy", "/limits"]);
    assert_eq!(both.envoy.folder().unwrap(), Path::new("/limits"));
}

/// Appends a frame of HTTP/2.
fn frame(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes()[1..]);
    bytes.extend([kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
}

// A gateway resets a call that takes too long, so a busy server finds many resets of calls that it has not begun.
#[tokio::test]
async fn resets_of_a_gateway_keep_the_connection() {
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const GO_AWAY: u8 = 7;
    let server = start(&path("limits")).await;
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frame(&mut bytes, SETTINGS, 0, 0, &[]);
    for call in 0..500 {
        // POST http /, without an end.
        frame(&mut bytes, HEADERS, 4, 2 * call + 1, &[0x83, 0x86, 0x84]);
        frame(&mut bytes, RESET, 0, 2 * call + 1, &8_u32.to_be_bytes());
    }
    frame(&mut bytes, PING, 0, 0, b"question");
    stream.write_all(&bytes).await.unwrap();
    let mut head = [0; 9];
    loop {
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        assert_ne!(head[3], GO_AWAY, "{}", String::from_utf8_lossy(&payload));
        if head[3] == PING && payload == b"question" {
            return;
        }
    }
}
