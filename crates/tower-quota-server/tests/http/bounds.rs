//! Large bodies, slow bodies, and wrong methods.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_quota_server::http::HttpOptions;

use crate::server::{Server, status};

const RULES: &str = "limits: [{ name: minute, quota: 9/minute, key: none }]";

#[tokio::test]
async fn large_bodies_are_refused() {
    let server = Server::start(RULES).await;
    let long = json!({ "path": format!("/{}", "x".repeat(1 << 20)) });
    for path in ["/v1/check", "/v1/check/0/commit", "/json"] {
        let (status, problem) = server.refused(path, long.clone()).await;
        assert_eq!(
            (status, problem["detail"].as_str().unwrap()),
            (413, "a body has at most 65536 bytes: send less")
        );
    }
    let most = json!({ "path": format!("/{}", "x".repeat(60 << 10)) });
    assert_eq!(server.call("/v1/check", most).await["allowed"], true);
}

#[tokio::test]
async fn body_for_a_gateway_is_not_read() {
    let server = Server::start(RULES).await;
    let ask = server.ask("192.0.2.1").body("x".repeat(1 << 20));
    assert_eq!(status(ask).await, 204);
    // nginx announces a body that it does not send.
    let address = server.address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "GET /v1/auth HTTP/1.0\r\nContent-Length: 9\r\nX-Forwarded-Method: POST\r\nX-Forwarded-Uri: /\r\n\
        X-Forwarded-Host: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 20];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.0 204 No Cont");
}

#[tokio::test]
async fn slow_body_ends_at_the_deadline() {
    let mut options = HttpOptions::default();
    options.body_timeout = Duration::from_millis(20);
    let server = Server::with(RULES, options).await;
    let address = server.address.strip_prefix("http://").unwrap();
    for path in ["/v1/check", "/v1/check/0/commit", "/json"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 408", "{path}");
    }
}

#[tokio::test]
async fn cut_body_is_no_call() {
    let server = Server::start(RULES).await;
    let address = server.address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}";
    stream.write_all(head.as_bytes()).await.unwrap();
    drop(stream);
    let peek = server.call("/v1/check", json!({ "peek": true })).await;
    assert_eq!(peek["limits"][0]["remaining"], 9);
}

#[tokio::test]
async fn wrong_methods_are_refused() {
    let server = Server::start(RULES).await;
    for path in ["/v1/check", "/v1/check/0/commit", "/json"] {
        for method in [Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS] {
            assert_eq!(
                status(server.request(method.clone(), path)).await,
                405,
                "{method} {path}"
            );
        }
    }
    assert_eq!(
        status(server.request(Method::GET, "/v1/auth/more")).await,
        404
    );
}
