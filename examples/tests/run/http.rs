//! Tests of the examples with HTTP.

use crate::example::{Example, Request, get, post};

#[test]
fn compose_decides_five_limits_at_once() {
    let example = Example::start("compose", &[]);
    example.expect(&get("/"), 400, &["x-api-key"]);
    let answer = example.expect(&get("/").header("x-api-key: ann"), 200, &[]);
    for name in ["address", "second", "minute", "hour", "everyone"] {
        assert!(
            answer.contains(&format!("\"{name}\";q=")),
            "{name} is missing: {answer}"
        );
        assert!(
            answer.contains(&format!("\"{name}\";r=")),
            "{name} is missing: {answer}"
        );
    }
}

#[test]
fn tiers_have_quotas_of_their_own() {
    let example = Example::start("tiers", &[]);
    for (request, expected) in [
        (get("/"), "\"strangers\";q=2;"),
        (get("/").header("x-api-key: made-up"), "\"strangers\";q=2;"),
        (get("/").header("x-api-key: key-of-fay"), "\"account\";q=3;"),
        (
            get("/").header("x-api-key: key-of-pat"),
            "\"account\";q=100;",
        ),
        (
            get("/").header("x-api-key: key-2-of-acme"),
            "\"account\";q=20000;",
        ),
    ] {
        example.expect(&request, 200, &[expected]);
    }
    // Unknown keys bring no quota, because strangers share a counter.
    example.until(
        |i| get("/").header(&format!("x-api-key: made-up-{i}")),
        |status, _| status == 429,
    );
    example.expect(&get("/healthz"), 200, &["well\n"]);
    example.expect(&get("/.env"), 403, &[]);
}

#[test]
fn behind_proxy_trusts_named_proxies() {
    let example = Example::start("behind_proxy", &[]);
    let from = |forwarded: &str| get("/").header(&format!("x-forwarded-for: {forwarded}"));
    example.expect(&from("203.0.113.7"), 200, &["hello 203.0.113.7\n"]);
    example.expect(
        &from("198.51.100.1, 203.0.113.7"),
        200,
        &["hello 203.0.113.7\n"],
    );
    // The limits count the address that the proxy saw, and the networks around the address.
    let refused_by = |limit: &str, forwarded: fn(usize) -> String| {
        let refused = example.until(|i| from(&forwarded(i)), |status, _| status == 429);
        assert!(
            refused.contains(&format!("\"violated-policies\":[\"{limit}\"]")),
            "{refused}"
        );
    };
    refused_by("client", |i| format!("198.51.100.{}, 203.0.113.7", i % 256));
    refused_by("home", |i| format!("2001:db8:5:{:x}::1", i % 256));
    refused_by("site", |i| format!("2001:db8:6:{:x}::1", i % 256 * 256));
    example.expect(&from("203.0.113.8"), 200, &[]);
}

#[test]
fn login_counts_wrong_passwords() {
    let example = Example::start("login", &[]);
    let with = |credentials: &str| {
        post("/login", "").header(&format!("authorization: Basic {credentials}"))
    };
    for _ in 0..7 {
        example.expect(&with("YW5uOnNlY3JldA=="), 200, &["welcome"]);
    }
    for _ in 0..5 {
        example.expect(&with("YW5uOmd1ZXNz"), 401, &[]);
    }
    example.expect(
        &with("YW5uOmd1ZXNz"),
        429,
        &["\"violated-policies\":[\"login-guesses\"]"],
    );
    example.expect(&with("YW5uOnNlY3JldA=="), 429, &["\r\nretry-after: "]);
    // Another user at the same address still has guesses.
    example.expect(&with("Ym9iOmd1ZXNz"), 401, &[]);
}

#[test]
fn llm_tokens_settles_what_was_used() {
    let example = Example::start("llm_tokens", &[]);
    let say = |prompt: &str| post("/", prompt).header("x-api-key: ann");
    example.expect(&post("/", "hello"), 400, &[]);
    // The estimate is 5 tokens for 19 bytes, plus 500 for the answer. The real numbers are 6 and 6. With 20000 tokens a
    // day, a token refills in about 4 seconds.
    example.expect(
        &say("to be or not to be!"),
        200,
        &["\"tokens\";r=19495", "not\n"],
    );
    let answer = example.expect(&say("to be or not to be!"), 200, &[]);
    let (_, left) = answer.split_once("\"tokens\";r=").unwrap();
    let left: u32 = left.split(';').next().unwrap().parse().unwrap();
    assert!((19_483..=19_495).contains(&left), "{answer}");
    // Every call uses 4000 tokens, although the layer reserved 1500.
    let long = "a ".repeat(2_000);
    for _ in 0..5 {
        example.expect(&say(&long), 200, &[]);
    }
    example.expect(&say(&long), 429, &["\"violated-policies\":[\"tokens\"]"]);

    let operators = example.line_beginning("operators: http://");
    let operators = operators.trim_start_matches("operators: http://");
    let (status, answer) = post("/grant/ann/10000", "").send(operators);
    assert!(
        status == 200 && answer.contains("of 20000 left"),
        "{answer}"
    );
    example.expect(&say("to be"), 200, &[]);
}

/// An order of tea by Ann.
fn order(idempotency_key: &str) -> Request {
    post("/orders", "tea")
        .header("x-api-key: ann")
        .header(&format!("idempotency-key: {idempotency_key}"))
}

#[test]
fn idempotent_replay_costs_nothing() {
    let example = Example::start("idempotent", &[]);
    let first = [
        "\"orders\";r=4",
        "idempotent-replayed: false",
        "order 1: tea\n",
    ];
    example.expect(&order("one"), 201, &first);
    for _ in 0..6 {
        let replayed = ["idempotent-replayed: true", "order 1: tea\n"];
        example.expect(&order("one"), 201, &replayed);
    }
    // Other clients and other keys are other orders.
    let bobs = post("/orders", "tea").header("x-api-key: bob");
    let bobs = bobs.header("idempotency-key: one");
    example.expect(&bobs, 201, &["\"orders\";r=4", "order 2: tea\n"]);
    let second = ["\"orders\";r=3", "order 3: tea\n"];
    example.expect(&order("two"), 201, &second);
    // Mistakes keep their units.
    let other_text = post("/orders", "coffee").header("x-api-key: ann");
    example.expect(&other_text.header("idempotency-key: one"), 422, &[]);
    let without_key = post("/orders", "tea").header("x-api-key: ann");
    example.expect(&without_key, 400, &[]);
    example.expect(&post("/orders", "tea"), 401, &[]);
    example.expect(&order("three"), 201, &["\"orders\";r=0"]);
    example.expect(&order("four"), 429, &["\r\nretry-after: "]);
    example.expect(&order("one"), 429, &["\r\nretry-after: "]);
}

#[test]
fn idempotent_requests_at_once_write_once() {
    let example = Example::start("idempotent", &[]);
    let sent: Vec<_> = (0..5)
        .map(|_| order("one").begin(&example.address))
        .collect();
    let mut replays = 0;
    for request in sent {
        let (status, answer) = request.end();
        assert_eq!(status, 201, "{answer}");
        assert!(answer.ends_with("order 1: tea\n"), "{answer}");
        replays += usize::from(answer.contains("idempotent-replayed: true"));
    }
    assert_eq!(replays, 4);
    // The five requests cost one unit.
    example.expect(&order("two"), 201, &["\"orders\";r=3", "order 2: tea\n"]);
}

#[test]
fn graphql_cost_is_measured() {
    let example = Example::start("graphql_cost", &[]);
    example.expect(
        &post("/", "{ hero { name } }"),
        200,
        &["\"fields\";r=998", "\"fields\":2}"],
    );
    let lists = "{ users(first: 20) { name posts(first: 20) { title } } }";
    example.expect(
        &post("/", lists),
        200,
        &["\"fields\";r=557", "\"fields\":441}"],
    );
    let refused = example.expect(
        &post("/", "{ users(first: 1000) { name email } }"),
        400,
        &[],
    );
    assert!(!refused.contains("retry-after"), "{refused}");
    example.expect(&post("/", lists), 200, &[]);
    example.expect(&post("/", lists), 429, &["\r\nretry-after: "]);
}

#[test]
fn batch_takes_what_is_left() {
    let example = Example::start("batch", &[]);
    let send = || post("/", "").header("x-messages: 70");
    example.expect(&send(), 200, &["sent 70\n"]);
    example.expect(&send(), 200, &["sent 30\n"]);
    example.expect(&send(), 429, &["\r\nretry-after: "]);
    example.expect(&post("/", "").header("x-messages: 0"), 200, &["sent 0\n"]);
}

#[cfg(target_os = "linux")]
#[test]
fn wait_in_line_is_even_and_bounded() {
    let example = Example::start("wait_in_line", &[]);
    // Send all requests at once. Even a slow machine sends more than two a second.
    let address = example.address.as_str();
    let answers: Vec<(u16, String)> = std::thread::scope(|scope| {
        let asking: Vec<_> = (1..31)
            .map(|i| scope.spawn(move || get("/").from([127, 0, 0, i]).send(address)))
            .collect();
        asking
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let served = answers.iter().filter(|(status, _)| *status == 200);
    let waits = served.map(|(_, answer)| {
        let (_, wait) = answer.rsplit_once("waited ").unwrap();
        wait.trim_end_matches(" ms\n").parse::<u32>().unwrap()
    });
    assert!(waits.clone().any(|wait| wait == 0), "{answers:?}");
    assert!(waits.clone().any(|wait| wait > 0), "{answers:?}");
    assert!(waits.clone().all(|wait| wait <= 2_000), "{answers:?}");
    let refused = answers.iter().find(|(status, _)| *status == 429);
    let (_, refused) = refused.unwrap_or_else(|| panic!("no request is refused: {answers:?}"));
    assert!(
        refused.contains("\"violated-policies\":[\"line\"]"),
        "{refused}"
    );
}

#[test]
fn custom_refusal_has_service_format() {
    let example = Example::start("custom_refusal", &[]);
    let ann = || get("/").header("x-api-key: ann");
    let styles = [
        "\r\nratelimit: limit=3, remaining=2, reset=20",
        "\r\nx-ratelimit-remaining-minute: 2\r\n",
    ];
    example.expect(&ann(), 200, &styles);
    let refused = example.until(|_| ann(), |status, _| status == 429);
    for expected in [
        "\"code\":\"slow_down\"",
        "application/json",
        "no-store",
        "\r\nretry-after: ",
        "remaining=0",
    ] {
        assert!(
            refused.contains(expected),
            "{expected} is missing: {refused}"
        );
    }
    example.expect(
        &get("/"),
        400,
        &["{\"code\":\"no_api_key\",\"retry_ms\":0}"],
    );
    example.expect(
        &get("/").header("accept: text/html"),
        400,
        &["<!doctype html>"],
    );
}

#[test]
fn shadow_is_reported_and_penalty_grows() {
    let example = Example::start("shadow_and_penalties", &[]);
    let answer = example.expect(&get("/"), 200, &[]);
    assert!(!answer.contains("x-ratelimit-shadow"), "{answer}");
    let has_shadow = |status, answer: &str| {
        status == 200 && answer.contains("\r\nx-ratelimit-shadow: \"proposed\"\r\n")
    };
    example.until(|_| get("/"), has_shadow);
    while example.line() != "allowed, would have been refused by [\"proposed\"]" {}
    // The quota alone never makes a client wait more than 20 seconds.
    let blocked = |_, answer: &str| {
        let wait = answer
            .split_once("\r\nretry-after: ")
            .and_then(|(_, rest)| rest.split("\r\n").next());
        wait.is_some_and(|seconds| seconds.parse::<u32>().unwrap() > 120)
    };
    example.until(|_| get("/"), blocked);
}

#[test]
fn ported_governor_keeps_its_rate() {
    let example = Example::start("from_tower_governor", &[]);
    example.expect(
        &post("/signup", ""),
        200,
        &["x-ratelimit-limit: 2", "x-ratelimit-remaining: 1"],
    );
    let refused = example.until(|_| post("/signup", ""), |status, _| status == 429);
    let wait = field(&refused, "retry-after");
    assert!(
        (1..=60).contains(&wait.parse::<u32>().unwrap()),
        "{refused}"
    );
    assert_eq!(field(&refused, "x-ratelimit-after"), wait, "{refused}");
    assert!(
        refused.contains("content-type: application/json"),
        "{refused}"
    );
    assert!(
        refused.contains(&format!(
            "\"error\":\"slow down\",\"retry_after_secs\":{wait}"
        )),
        "{refused}"
    );
    // At a request every two seconds, no wait is longer than 2 s. At two requests a second, every wait would be 1 s.
    let refused = example.until(|_| get("/"), |status, _| status == 429);
    assert!(
        ["1", "2"].contains(&field(&refused, "retry-after")),
        "{refused}"
    );
    assert_eq!(field(&refused, "x-ratelimit-limit"), "5", "{refused}");
}

#[test]
fn from_express_counts_users_else_addresses() {
    let example = Example::start("from_express_rate_limit", &[]);
    let ann = || get("/").header("x-session: session-of-ann");
    example.expect(
        &ann(),
        200,
        &["ratelimit-policy: \"api\";q=5;w=60", "\"api\";r=4"],
    );
    let refused = example.until(|_| ann(), |status, _| status == 429);
    assert!(
        refused.contains("{\"error\":\"too many requests, please try again later.\"}"),
        "{refused}"
    );
    assert!(!refused.contains("x-ratelimit-limit"), "{refused}");
    example.expect(
        &get("/").header("x-session: session-of-bob"),
        200,
        &["\"api\";r=4"],
    );
    example.expect(&get("/"), 200, &["\"api\";r=4"]);
    let health = example.expect(&get("/health"), 200, &["well"]);
    assert!(!health.contains("ratelimit"), "{health}");
}

#[test]
fn from_express_login_counts_failures_until_success() {
    let example = Example::start("from_express_rate_limit", &[]);
    let login = |name: &str, password: &str| {
        let body = format!("{{\"username\":\"{name}\",\"password\":\"{password}\"}}");
        post("/login", &body).header("content-type: application/json")
    };
    for _ in 0..3 {
        // The right password is free, and resets the counter of two mistakes.
        example.expect(&login("ann", "guess"), 401, &["\"login\";r=2"]);
        example.expect(&login("Ann", "guess"), 401, &["\"login\";r=1"]);
        example.expect(&login("ann", "secret"), 200, &["session-of-ann"]);
    }
    for _ in 0..3 {
        example.expect(&login("ann", "guess"), 401, &[]);
    }
    example.expect(&login("ann", "secret"), 429, &["retry-after"]);
    example.expect(&login("bob", "guess"), 401, &[]);
    example.expect(&post("/login", "no json"), 400, &[]);
}

/// Returns the value of a header field of an answer in lower case.
fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    let value = answer
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value.unwrap_or_else(|| panic!("no {name}: {answer}"))
}

#[test]
fn soft_limits_challenge_and_delay() {
    let example = Example::start("soft_limits", &[]);
    for _ in 0..3 {
        example.expect(&post("/login", ""), 401, &["wrong password"]);
    }
    for _ in 0..3 {
        example.expect(&post("/login", ""), 403, &["solve the challenge"]);
    }
    let solved = post("/login", "").header("x-challenge: solved");
    example.expect(&solved, 401, &["wrong password"]);
    for _ in 0..5 {
        example.expect(&get("/search"), 200, &["fresh results"]);
    }
    example.expect(&get("/search"), 200, &["results of a minute ago"]);
    // The hard limit refuses.
    example.until(|_| get("/search"), |status, _| status == 429);
}
