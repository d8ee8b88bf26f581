//! Clients that are slow, silent or many. Time is virtual: it moves on when nothing else can happen.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_prost::ProstCodec;
use tower_quota_server::messages::descriptors::RateLimitDescriptor;
use tower_quota_server::options::Options;
use tower_quota_server::serve::BoundServer;

use crate::certificates::Authority;
use crate::support::{DOCUMENT, Files, Server, call, get, limits, program_with_files, text, until};

/// A server in this process.
struct Running {
    http: SocketAddr,
    grpc: SocketAddr,
    admin: SocketAddr,
    end: oneshot::Sender<()>,
    ended: JoinHandle<()>,
    _files: Files,
}

async fn start(flags: &[&str]) -> Running {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let ports = ["--http", "--grpc", "--admin"].map(|flag| [flag, "127.0.0.1:0"]);
    let all = [
        &["server", "--rules", text(&rules)],
        ports.as_flattened(),
        flags,
    ]
    .concat();
    let server = BoundServer::bind(&Options::read(all).unwrap())
        .await
        .unwrap();
    let (end, signal) = oneshot::channel();
    let (http, grpc, admin) = (
        server.http_address(),
        server.grpc_address(),
        server.admin_address(),
    );
    Running {
        http,
        grpc,
        admin,
        end,
        ended: tokio::spawn(server.run(async {
            let _ = signal.await;
        })),
        _files: files,
    }
}

async fn channel(address: SocketAddr) -> Channel {
    let channel = Channel::from_shared(format!("http://{address}")).unwrap();
    channel.connect().await.unwrap()
}

/// Sends bytes on a new connection, and waits until the server closes the connection. Returns the answer.
async fn closed(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer).await {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    answer
}

#[tokio::test(start_paused = true)]
async fn connections_without_a_complete_request_end() {
    let server = start(&[]).await;
    let half = b"GET /healthz HTTP/1.1\r\nhost: a\r\n";
    for address in [server.http, server.admin] {
        for bytes in [&b""[..], b"G", half] {
            assert_eq!(closed(address, bytes).await, b"", "{bytes:?}");
        }
    }
    // The preface of HTTP/2, and a head that does not end.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let head = b"\0\0\x01\x01\0\0\0\0\x01\x82";
    for bytes in [&b""[..], b"PRI", preface, &[&preface[..], head].concat()] {
        closed(server.grpc, bytes).await;
    }
}

#[tokio::test(start_paused = true)]
async fn handshake_that_does_not_end_is_cut() {
    let (files, authority) = (Files::new(), Authority::new());
    let signed = authority.sign("server.internal");
    let certificate = files.write("cert.pem", &signed.certificate);
    let key = files.write("key.pem", &signed.key);
    let (certificate, key) = (text(&certificate), text(&key));
    let server = start(&[
        "--http-tls-cert",
        certificate,
        "--http-tls-key",
        key,
        "--grpc-tls-cert",
        certificate,
        "--grpc-tls-key",
        key,
    ])
    .await;
    for address in [server.http, server.grpc] {
        // The beginning of a handshake, and a request without TLS.
        assert_eq!(closed(address, b"").await, b"");
        assert_eq!(closed(address, b"\x16\x03\x01\x02\0\x01").await, b"");
        let answer = closed(address, b"GET / HTTP/1.1\r\n\r\n").await;
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the runtime's time is paused")]
async fn handshake_keeps_no_server_from_its_end() {
    let (files, authority) = (Files::new(), Authority::new());
    let signed = authority.sign("server.internal");
    let certificate = files.write("cert.pem", &signed.certificate);
    let key = files.write("key.pem", &signed.key);
    let tls = [
        "--http-tls-cert",
        text(&certificate),
        "--http-tls-key",
        text(&key),
    ];
    let drain = ["--drain-delay", "0s", "--drain", "1h"];
    let server = start(&[tls, drain].concat()).await;
    let mut silent = TcpStream::connect(server.http).await.unwrap();
    silent.write_all(b"\x16\x03\x01\x02\0\x01").await.unwrap();
    // Connections are accepted in their order.
    closed(server.http, b"GET / HTTP/1.1\r\n\r\n").await;
    let began = tokio::time::Instant::now();
    drop(server.end);
    server.ended.await.unwrap();
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn idle_connection_ends_and_busy_one_stays() {
    let server = start(&[]).await;
    let request = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    let mut pauses = tokio::time::interval(core::time::Duration::from_secs(60));
    for _ in 0..10 {
        pauses.tick().await;
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nOK") {
            assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "closed");
        }
    }
    stream.read_to_end(&mut Vec::new()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn body_that_does_not_end_is_answered() {
    let server = start(&[]).await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
    let answer = closed(server.http, head.as_bytes()).await;
    assert!(answer.starts_with(b"HTTP/1.1 408 "), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn call_that_does_not_end_gets_an_error() {
    let server = start(&[]).await;
    let mut client = tonic::client::Grpc::new(channel(server.grpc).await);
    client.ready().await.unwrap();
    let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    let path = PathAndQuery::from_static("/grpc.health.v1.Health/Check");
    let silent = tonic::Request::new(tokio_stream::pending());
    let status = client.streaming(silent, path, codec).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::DeadlineExceeded, "{status}");
}

#[tokio::test(start_paused = true)]
async fn old_connection_ends_between_calls() {
    let server = start(&["--grpc-age", "1m", "--grpc-age-grace", "1s"]).await;
    let mut health = HealthClient::new(channel(server.grpc).await);
    let mut pauses = tokio::time::interval(core::time::Duration::from_secs(7));
    for _ in 0..30 {
        pauses.tick().await;
        let request = HealthCheckRequest::default();
        assert_eq!(health.check(request).await.unwrap().into_inner().status, 1);
    }
    let request = b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let metrics = String::from_utf8(closed(server.admin, request).await).unwrap();
    assert!(
        metrics.contains("{port=\"grpc\",reason=\"age\"}"),
        "{metrics}"
    );
}

#[tokio::test(start_paused = true)]
async fn client_that_never_reads_loses_the_connection() {
    let server = start(&[]).await;
    let stream = TcpStream::connect(server.admin).await.unwrap();
    let (_unread, mut requests) = stream.into_split();
    let request = b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(1_000);
    // Buffers of the kernel are full at some point.
    while requests.write_all(&request).await.is_ok() {}
    drop(server.end);
    server.ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn long_head_is_refused() {
    let server = start(&[]).await;
    let head = format!("GET /healthz HTTP/1.1\r\nx: {}", "a".repeat(100_000));
    let mut stream = TcpStream::connect(server.http).await.unwrap();
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 431");
}

#[test]
fn slow_clients_leave_places_to_others() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let server = Server::start(&["--rules", text(&rules), "--http-connections", "8"]);
    let http = server.http();
    let slow: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(http).unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(get(http, "/healthz").0, 200);
    }
    // Other ports have places of their own.
    assert_eq!(get(server.admin(), "/healthz").0, 200);
    let (_, metrics) = get(server.admin(), "/metrics");
    assert!(
        metrics.contains("{port=\"http\",reason=\"evicted\"}"),
        "{metrics}"
    );
    let mut ended: usize = 0;
    for mut stream in slow {
        stream.set_nonblocking(true).unwrap();
        ended += match stream.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            _ => 1,
        };
    }
    assert!(ended >= 32, "{ended}");
}

#[test]
fn slow_bodies_leave_places_to_others() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let server = Server::start(&["--rules", text(&rules), "--http-connections", "8"]);
    let http = server.http();
    let head = b"POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
        expect: 100-continue\r\ncontent-length: 9\r\n\r\n";
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(http).unwrap();
            stream.write_all(head).unwrap();
            // The server waits for the body.
            stream.read_exact(&mut [0; 25]).unwrap();
            stream
        })
        .collect();
    assert_eq!(get(http, "/healthz").0, 200);
    drop(slow);
}

#[tokio::test]
async fn waiting_requests_leave_places_to_others() {
    let files = Files::new();
    let rules =
        "limits: [{ name: turns, quota: 1/hour leaky_bucket, key: header x-user, max_wait: 12h }]";
    let rules = files.write("rules.yaml", rules);
    let server = Server::start(&["--rules", text(&rules), "--http-connections", "8"]);
    let (http, admin) = (server.http(), server.admin());
    let waiting = || {
        let (_, metrics) = get(admin, "/metrics");
        let lines = metrics.lines();
        let mut waiting = lines.filter_map(|line| {
            line.strip_prefix("tower_quota_waiting_requests{layer=\"documents\"} ")
        });
        waiting.next().unwrap().parse::<usize>().unwrap()
    };
    let head = "GET /v1/auth HTTP/1.1\r\nhost: a\r\nx-forwarded-method: GET\r\nx-forwarded-uri: /\r\n\
        x-forwarded-host: a\r\nx-forwarded-for: 192.0.2.1\r\n";
    let mut clients = Vec::new();
    for user in ["ann", "bob", "eve"] {
        for _ in 0..4 {
            let before = waiting();
            let mut client = std::net::TcpStream::connect(http).unwrap();
            let request = format!("{head}x-user: {user}\r\n\r\n");
            client.write_all(request.as_bytes()).unwrap();
            client.set_nonblocking(true).unwrap();
            until("the request is answered or waits", || {
                waiting() > before || client.peek(&mut [0]).is_ok()
            })
            .await;
            clients.push(client);
        }
    }
    assert_eq!(waiting(), 4, "half of the places");
    assert_eq!(get(http, "/healthz").0, 200);
}

#[tokio::test]
async fn server_with_few_files_serves_other_clients() {
    let files = Files::new();
    let rules = files.write("rules.yaml", DOCUMENT);
    let mut program = program_with_files(48);
    let server = Server::spawn(program.args(["--rules", text(&rules)]));
    let http = server.http();
    let slow: Vec<_> = (0..100)
        .map(|_| std::net::TcpStream::connect(http).unwrap())
        .collect();
    for _ in 0..3 {
        assert_eq!(get(http, "/healthz").0, 200);
    }
    // HTTP leaves files to gRPC.
    let _client = server.client().await;
    drop(slow);
}

#[tokio::test]
async fn long_domain_of_many_descriptors_takes_little_memory() {
    let files = Files::new();
    let shop = files.write("shop.yaml", &limits("shop", 9));
    let server = Server::start(&["--envoy", text(&shop)]);
    let mut request = call(&"d".repeat(200_000), "ann");
    request.descriptors = vec![RateLimitDescriptor::default(); 1_000];
    let mut client = server.client().await;
    let response = client.should_rate_limit(request).await.unwrap();
    assert_eq!(response.into_inner().statuses.len(), 1_000);
    let peak = server.peak_memory();
    assert!(peak < 100_000, "{peak} KiB");
}
