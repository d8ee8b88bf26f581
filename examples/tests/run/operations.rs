//! Tests of the admin port, and of the shutdown at SIGTERM.

use std::process::Command;

use crate::example::{Example, Request, get, request};

/// Starts the example on free ports, and returns the example and the address of the admin port.
fn start() -> (Example, String) {
    let example = Example::start("operations", &[("ADMIN_PORT", "0")]);
    let admin = example
        .line()
        .strip_prefix("admin on http://")
        .unwrap()
        .to_owned();
    (example, admin)
}

fn ann() -> Request {
    get("/").header("x-api-key: ann-12345")
}

#[test]
fn operations_admin_changes_client_limits() {
    let (example, admin) = start();
    let operate = |method: &str, path: &str, status: u16| {
        let (got, answer) = request(method, path).send(&admin);
        assert_eq!(got, status, "{method} {path}: {answer}");
        answer
    };
    let peek = || operate("GET", "/clients/minute/ann-12345", 200);

    assert!(
        operate("GET", "/limits", 200)
            .contains("[\"minute\",\"address\",\"slow-client\",\"slow\"]")
    );
    for _ in 0..3 {
        example.expect(&ann(), 200, &[]);
    }
    example.expect(&ann(), 429, &[]);
    assert!(
        peek().contains("\"admits\":false") && peek().contains("\"remaining\":0"),
        "{}",
        peek()
    );
    let refused = operate("GET", "/refused", 200);
    assert!(
        refused.contains("\"client\":\"ann-\"") && refused.contains("\"refusals\":1"),
        "{refused}"
    );

    operate("POST", "/clients/minute/ann-12345/grant/1", 200);
    example.expect(&ann(), 200, &[]);
    example.expect(&ann(), 429, &[]);
    assert!(operate("DELETE", "/clients/minute/ann-12345", 200).contains("\"remaining\":3"));
    example.expect(&ann(), 200, &[]);

    operate("PUT", "/blocks/minute/ann-12345/600", 204);
    example.expect(&ann(), 403, &[]);
    assert!(peek().contains("\"blocked_secs\":"), "{}", peek());
    // The limit counts clients without a key by address.
    example.expect(&get("/"), 200, &[]);
    operate("PUT", "/blocks/minute/127.0.0.1/600", 204);
    example.expect(&get("/"), 403, &[]);
    operate("DELETE", "/blocks/minute/ann-12345", 204);
    operate("DELETE", "/blocks/minute/ann-12345", 404);
    // A request from a blocked address is refused, whatever key the client sends.
    example.expect(&ann(), 403, &[]);
    operate("DELETE", "/blocks/minute/127.0.0.1", 204);
    example.expect(&ann(), 200, &["\"minute\";q=3"]);

    operate("PUT", "/per_minute/100", 204);
    example.expect(&ann(), 200, &["\"minute\";q=100"]);
    operate("PUT", "/per_minute/0", 400);
    assert!(
        operate("GET", "/clients/hour/ann-12345", 404)
            .contains("its limits are minute, address, slow-client, slow")
    );
}

#[cfg(unix)]
#[test]
fn operations_ends_waits_at_sigterm() {
    let (example, admin) = start();
    example.expect(&get("/slow"), 200, &[]);
    // The request would wait for 20 seconds.
    let waiting = get("/slow").begin(&example.address);
    let is_queued = (0..1_000).any(|_| get("/waiting").send(&admin).1.ends_with("\n1"));
    assert!(is_queued, "the request does not wait");
    let killed = Command::new("kill")
        .arg(example.id().to_string())
        .status()
        .unwrap();
    assert!(killed.success());
    let (status, answer) = waiting.end();
    assert_eq!(status, 429, "{answer}");
    assert_eq!(
        example.line_beginning("stopped"),
        "stopped, nothing is lost"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn slow_admin_clients_leave_the_service_alone() {
    let (example, admin) = start();
    example.bounds_slow_clients(&admin, &get("/limits"));
}
