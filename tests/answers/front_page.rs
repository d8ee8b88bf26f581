//! Tests that the service of the README answers as the README shows.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use http::{Request, Response};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, key};
use tower_quota_testkit::ManualClock;

const README: &str = include_str!("../../README.md");

#[tokio::test]
async fn readme_service_answers_as_shown() {
    let policy = Policy::new()
        .limit(Limit::new("burst", Quota::per_second(10).burst(20)).by(key::client_ip()))
        .limit(
            Limit::new("hour", Quota::per_hour(1_000).fixed_window())
                .by(key::header("x-api-key").or(key::client_ip())),
        )
        .limit(Limit::new("everyone", Quota::per_second(5_000)));
    let store = MemoryStore::with_clock(1_000, ManualClock::default());
    let mut service = RateLimitLayer::new(store, policy).layer(service_fn(|_: Request<()>| {
        ready(Ok::<_, Infallible>(Response::new(String::from("hello"))))
    }));
    let (_, shown) = README.split_once("```http\n").unwrap();
    let (shown, _) = shown.split_once("\n```").unwrap();
    let (first, refused) = shown.split_once("\n\n").unwrap();

    for number in 1..=21 {
        let peer = ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 4000)));
        let request = Request::get("/").extension(peer).body(()).unwrap();
        let answer = service.ready().await.unwrap().call(request).await.unwrap();
        match number {
            1 => assert_shows(first, &answer),
            21 => assert_shows(refused, &answer),
            _ => assert!(answer.status().is_success()),
        }
    }
}

fn assert_shows<Body>(shown: &str, answer: &Response<Body>) {
    let (status, fields) = shown.split_once('\n').unwrap();
    assert_eq!(status, format!("HTTP/1.1 {}", answer.status()));
    for field in fields.lines() {
        let (name, value) = field.split_once(": ").unwrap();
        assert_eq!(answer.headers()[name], value, "{name}");
    }
}
