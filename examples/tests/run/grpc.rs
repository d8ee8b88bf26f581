//! Tests of the examples with gRPC.

use tonic::transport::Endpoint;
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::example::{Example, get};

#[test]
fn tonic_refuses_the_fourth_call() {
    let example = Example::start("tonic", &[]);
    let calls: Vec<String> = (0..5).map(|_| example.line()).collect();
    for served in &calls[..3] {
        assert!(served.contains("Serving"), "{calls:?}");
    }
    for refused in &calls[3..] {
        assert!(refused.contains("ResourceExhausted"), "{calls:?}");
        let (_, wait) = refused.rsplit_once("retry-after: ").unwrap();
        assert!(
            (1..=20).contains(&wait.parse::<u32>().unwrap()),
            "{calls:?}"
        );
    }
}

#[test]
fn tonic_streaming_settles_what_was_sent() {
    let example = Example::start("tonic_streaming", &[]);
    // At 20 messages an hour, no unit refills during the test. After two calls 33 units are used, and a third needs 5.
    let lines = [
        "15 messages remaining after an estimate of 5, received 3",
        "12 messages remaining after an estimate of 5, received 30",
    ];
    for expected in lines {
        assert_eq!(example.line(), expected);
    }
    let refused = example.line();
    let wait = refused
        .strip_prefix("ResourceExhausted, retry after ")
        .and_then(|rest| rest.strip_suffix(" s"));
    let wait: u32 = wait.unwrap_or_else(|| panic!("{refused}")).parse().unwrap();
    assert!((18 * 180 - 60..=18 * 180).contains(&wait), "{refused}");
}

#[tokio::test]
async fn http_and_grpc_share_a_budget() {
    let example = Example::start("http_and_grpc", &[]);
    let channel = Endpoint::from_shared(format!("http://{}", example.address))
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut client = HealthClient::new(channel);
    let mut call = async |api_key: &'static str| {
        let mut request = Request::new(HealthCheckRequest::default());
        request
            .metadata_mut()
            .insert("x-api-key", api_key.parse().unwrap());
        client
            .check(request)
            .await
            .map_or_else(|status| status.code(), |_| Code::Ok)
    };
    let ann = || get("/").header("x-api-key: ann");

    assert_eq!(call("ann").await, Code::Ok);
    example.expect(&ann(), 200, &["\"requests\";r=3"]);
    assert_eq!(call("ann").await, Code::Ok);
    assert_eq!(call("ann").await, Code::Ok);
    // The fourth call exceeds the limit of the method. The last request of the budget remains for HTTP.
    assert_eq!(call("ann").await, Code::ResourceExhausted);
    example.expect(&ann(), 200, &["\"requests\";r=0"]);
    example.expect(&ann(), 429, &["\"violated-policies\":[\"requests\"]"]);
    assert_eq!(call("bob").await, Code::Ok);
    example.expect(&get("/nothing-here").header("x-api-key: bob"), 404, &[]);
}

#[test]
fn tonic_custom_uses_own_refusal_text() {
    let example = Example::start("tonic_custom", &[]);
    let lines: Vec<String> = (0..7).map(|_| example.line()).collect();
    assert_eq!(
        lines[0],
        "no key: Unauthenticated, send your API key as x-api-key"
    );
    assert!(
        lines[1..4].iter().all(|line| line == "ann: served"),
        "{lines:?}"
    );
    assert!(
        lines[4].starts_with("ann: ResourceExhausted, your plan has more calls in "),
        "{lines:?}"
    );
    assert_eq!(lines[5], "ann: asked for 15 messages, got 15, Ok");
    // Five units remain, so the stream ends after five messages, without debt.
    assert_eq!(
        lines[6],
        "ann: asked for 30 messages, got 5, ResourceExhausted"
    );
}
