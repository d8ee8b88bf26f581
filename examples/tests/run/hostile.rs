//! Tests of attacks. A client tries to exceed a quota, to exhaust the quota of another client, or to cause expensive
//! work.

use std::time::Duration;

use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::example::{Example, Request, get, post};

/// Asserts that a client who sends a new API key with every request is refused in the end.
fn assert_counts_address(example: &Example, request: impl Fn() -> Request) {
    example.until(
        |i| request().header(&format!("x-api-key: made-up-{i}")),
        |status, _| status == 429,
    );
}

#[test]
fn flood_of_keys_is_not_looked_up() {
    let example = Example::start("tiers", &[]);
    // The quota is 100 a second, so a slow machine may need several attempts.
    let from_outside = |status, answer: &str| {
        status == 429 && answer.contains("\"violated-policies\":[\"flood\"]")
    };
    example.until(
        |i| get("/").header(&format!("x-api-key: made-up-{i}")),
        from_outside,
    );
}

#[test]
fn made_up_keys_share_the_address() {
    for name in ["compose", "custom_refusal", "http_and_grpc", "operations"] {
        assert_counts_address(&Example::start(name, &[("ADMIN_PORT", "0")]), || get("/"));
    }
    assert_counts_address(&Example::start("llm_tokens", &[]), || post("/", "hello"));
}

#[test]
fn forged_sessions_share_the_address() {
    let example = Example::start("from_express_rate_limit", &[]);
    example.until(
        |i| get("/").header(&format!("x-session: session-of-{i}")),
        |status, _| status == 429,
    );
}

#[test]
fn sprayed_password_is_refused_by_address() {
    let example = Example::start("from_express_rate_limit", &[]);
    let guess = |i| {
        let body = format!("{{\"username\":\"user-{i}\",\"password\":\"guess\"}}");
        post("/login", &body).header("content-type: application/json")
    };
    example.until(guess, |status, _| status == 429);
}

#[test]
fn login_without_credentials_spends_nothing() {
    let example = Example::start("login", &[]);
    for _ in 0..30 {
        example.expect(&post("/login", ""), 401, &["www-authenticate: basic"]);
    }
    // All 20 guesses of the address remain.
    example.expect(
        &post("/login", "").header("authorization: Basic YW5uOmd1ZXNz"),
        401,
        &["\"login-address\";r=19"],
    );
}

#[test]
fn unmeasurable_graphql_query_is_refused() {
    let example = Example::start("graphql_cost", &[]);
    for query in [
        "{ users(first: 99999999999999999999) { name } }",
        "{ users(first: 1e9) { name } }",
        "query ($n: Int) { users(first: $n) { name } }",
        "{ users(name: \")\" first: 900) { name } }",
        "{ users { ...all } } fragment all on User { name }",
        "{ users # }\n { name } }",
        "{ users(last: 900) { name } }",
        "{ users(first: 900, first: 1) { name } }",
        "{ users(",
        "{ users } }",
    ] {
        example.expect(&post("/", query), 400, &[]);
    }
    example.expect(&post("/", "{ hero { name } }"), 200, &["\"fields\":2}"]);
}

#[test]
fn llm_prompt_beyond_its_estimate_is_refused() {
    let example = Example::start("llm_tokens", &[]);
    let words = "a ".repeat(100_000);
    let chunked = format!("{:x}\r\n{words}\r\n0\r\n\r\n", words.len());
    let prompt = || get("/").header("x-api-key: ann");
    example.expect(&prompt().chunked(&chunked), 413, &[]);
    example.expect(&post("/", "hello").header("x-api-key: ann"), 200, &[]);
}

#[cfg(target_os = "linux")]
#[test]
fn waiting_client_leaves_places_to_others() {
    let example = Example::start("wait_in_line", &[]);
    let hog: Vec<_> = (0..12)
        .map(|_| get("/").from([127, 0, 0, 2]).begin(&example.address))
        .collect();
    example.expect(&get("/").from([127, 0, 0, 3]), 200, &["waited"]);
    let refused = hog
        .into_iter()
        .map(|request| request.end().0)
        .filter(|status| *status == 429)
        .count();
    assert!(refused >= 9, "{refused} of 12 are refused");
}

#[cfg(target_os = "linux")]
#[test]
fn slow_queue_keeps_places_for_others() {
    let example = Example::start("operations", &[("ADMIN_PORT", "0")]);
    let hog: Vec<_> = (0..6)
        .map(|_| get("/slow").from([127, 0, 0, 2]).begin(&example.address))
        .collect();
    let admin = example
        .line()
        .strip_prefix("admin on http://")
        .unwrap()
        .to_owned();
    let waiting =
        |number: &str| (0..1_000).any(|_| get("/waiting").send(&admin).1.ends_with(number));
    assert!(
        waiting("\n1"),
        "the first client has one request served and one waiting"
    );
    let _waits = get("/slow").from([127, 0, 0, 3]).begin(&example.address);
    assert!(waiting("\n2"), "another client finds a place");
    drop(hog);
}

#[test]
fn admin_port_refuses_cross_site_requests() {
    let example = Example::start("operations", &[("ADMIN_PORT", "0")]);
    let admin = example
        .line()
        .strip_prefix("admin on http://")
        .unwrap()
        .to_owned();
    let grant = || post("/clients/minute/ann/grant/5", "");
    assert_eq!(
        grant().header("origin: http://evil.example").send(&admin).0,
        403
    );
    assert_eq!(grant().host("evil.example:3001").send(&admin).0, 403);
    assert_eq!(grant().send(&admin).0, 200);
}

#[test]
fn websocket_frame_is_refused_by_its_header() {
    let example = Example::start("websocket", &[]);
    let upgrade = get("/chat/ann")
        .header("upgrade: websocket")
        .header("connection: upgrade")
        .header("sec-websocket-version: 13")
        .header(&format!("sec-websocket-key: {}", generate_key()));
    // Send only the header of a binary frame of 15 megabytes.
    let mut frame = vec![0x82, 0xFF];
    frame.extend(15_000_000_u64.to_be_bytes());
    frame.extend([0; 4]);
    assert!(
        upgrade
            .begin(&example.address)
            .ends_after(&frame, Duration::from_secs(10))
    );
}

#[tokio::test]
async fn made_up_users_share_the_address() {
    let example = Example::start("websocket", &[]);
    let mut open = Vec::new();
    for user in 0..100 {
        let url = format!("ws://{}/chat/made-up-{user}", example.address);
        match connect_async(url).await {
            Ok((socket, _)) => open.push(socket),
            Err(Error::Http(refused)) => {
                assert_eq!((refused.status().as_u16(), open.len()), (429, 20));
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("100 connections are served");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn endless_stream_is_refused() {
    let example = Example::start("tonic_streaming", &[]);
    let endpoint = Endpoint::from_shared(format!("http://{}", example.address)).unwrap();
    let channel = endpoint
        .local_address(Some([127, 0, 0, 2].into()))
        .connect()
        .await
        .unwrap();
    let mut client = HealthClient::new(channel);
    let refused = client
        .watch(HealthCheckRequest {
            service: u64::MAX.to_string(),
        })
        .await;
    assert_eq!(
        refused.map(|_| ()).unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn made_up_metadata_shares_the_address() {
    let example = Example::start("tonic_custom", &[]);
    let endpoint = Endpoint::from_shared(format!("http://{}", example.address)).unwrap();
    let channel = endpoint
        .local_address(Some([127, 0, 0, 2].into()))
        .connect()
        .await
        .unwrap();
    let mut client = HealthClient::new(channel);
    for call in 0..1_000 {
        let mut request = tonic::Request::new(HealthCheckRequest::default());
        request
            .metadata_mut()
            .insert("x-api-key", format!("made-up-{call}").parse().unwrap());
        if client
            .check(request)
            .await
            .is_err_and(|status| status.code() == Code::ResourceExhausted)
        {
            return;
        }
    }
    panic!("1000 calls are served");
}
