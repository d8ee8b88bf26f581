//! Tests of the examples with Redis.

use std::process::{Command, Stdio};

use tower_quota_dev::RedisServer;

use crate::example::{Example, get, post, program};

#[test]
fn redis_instances_share_a_budget() {
    let server = RedisServer::start();
    let url = server.url();
    let instances = [
        Example::start("redis", &[("REDIS_URL", &url)]),
        Example::start("redis", &[("REDIS_URL", &url)]),
    ];
    // Returns the remaining units of the day. On a busy machine a decision may miss the deadline, and the answer then has
    // no fields.
    let left = |instance: &Example| -> Option<u32> {
        let (_, answer) = instance.ask(&get("/").header("x-api-key: ann"));
        let (_, day) = answer.split_once("\"day\";r=")?;
        day.split(';').next()?.parse().ok()
    };
    // The first instance takes more units than the second. With separate counters, more units would remain in the second.
    let one = |times| {
        let left: Vec<u32> = (0..times).filter_map(|_| left(&instances[0])).collect();
        *left.last().expect("one answer has fields")
    };
    let other = || {
        (0..10)
            .find_map(|_| left(&instances[1]))
            .expect("one of ten answers has fields")
    };
    // A new day may begin between two requests, but not twice.
    assert!(
        (0..2).any(|_| one(30) > other()),
        "each instance counts for itself"
    );
}

#[test]
fn redis_counts_made_up_keys_by_address() {
    let server = RedisServer::start();
    let example = Example::start("redis", &[("REDIS_URL", &server.url())]);
    example.until(
        |i| get("/").header(&format!("x-api-key: made-up-{i}")),
        |status, _| status == 429,
    );
}

#[test]
fn redis_names_missing_server() {
    let output = Command::new(program("redis"))
        .env("REDIS_URL", "redis://127.0.0.1:1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("127.0.0.1:1") && said.contains("REDIS_URL"),
        "{said}"
    );
}

#[test]
fn login_fails_closed() {
    let server = RedisServer::start();
    let wrong = || post("/login", "").header("authorization: Basic YW5uOmd1ZXNz");
    let example = Example::start("login", &[("REDIS_URL", &server.url())]);
    // At first, the store may still be connecting.
    let counted = example.until(|_| wrong(), |status, _| status == 401);
    assert!(
        counted.contains("ratelimit-policy: \"login-guesses\";q=5;w=900"),
        "{counted}"
    );

    let example = Example::start("login", &[("REDIS_URL", "redis://127.0.0.1:1")]);
    example.expect(&wrong(), 503, &["\r\nretry-after: 1\r\n"]);
}
