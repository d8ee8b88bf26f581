//! Several servers on one Redis.

use tower_quota_dev::RedisServer;

use crate::support::{Files, Server, TOKEN, get_with, send, text, until};

const RULES: &str = "limits: [{ name: day, quota: 2/day fixed_window, key: header x-user }]";

/// Asks for a request of a user, as a gateway does. Returns the status.
fn ask(server: &Server, user: &str) -> u16 {
    let forwarded = "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-host: a\r\nx-forwarded-for: 192.0.2.1\r\n";
    let fields = format!("{forwarded}x-user: {user}\r\n");
    get_with(server.http(), "/v1/auth", &fields).0
}

fn put(server: &Server, path: &str, kind: &str, body: &str) -> (u16, String) {
    let head = format!(
        "PUT {path} HTTP/1.1\r\nauthorization: Bearer {TOKEN}\r\nif-none-match: *\r\ncontent-type: application/{kind}\r\ncontent-length: {}\r\n",
        body.len()
    );
    send(server.admin(), &head, body).unwrap()
}

#[tokio::test]
async fn servers_share_rules_counters_and_blocks() {
    let (redis, files) = (RedisServer::start(), Files::new());
    let (url, copy) = (redis.url(), files.path("copy"));
    let flags = [
        "--rules",
        "redis",
        "--redis",
        &url,
        "--rules-copy",
        text(&copy),
        "--deadline",
        "1m",
    ];
    let start = || Server::start_with(&flags, &[("TOWER_QUOTA_ADMIN_TOKEN", TOKEN)]);
    let (one, other) = (start(), start());
    assert_eq!(ask(&one, "early"), 503, "there are no rules");
    let (_, report) = get_with(one.admin(), "/readyz", "");
    assert!(report.contains("put the first document"), "{report}");

    assert_eq!(put(&one, "/v1/rules", "yaml", RULES).0, 200);
    for server in [&one, &other] {
        until("the rules are in force", || ask(server, "probe") != 503).await;
    }
    let counted = [&one, &other, &one].map(|server| ask(server, "ann"));
    assert_eq!(counted, [204, 204, 429]);
    assert!(copy.exists());

    let block = r#"{ "target": "bob", "seconds": 3600, "reason": "a stolen key" }"#;
    let (status, answer) = put(&one, "/v1/blocks", "json", block);
    assert!(
        status == 200 && answer.contains(r#""reach":"all instances""#),
        "{answer}"
    );
    until("the block holds on the other", || ask(&other, "bob") == 403).await;
    drop((one, other));
    let again = start();
    assert_eq!([ask(&again, "bob"), ask(&again, "ann")], [403, 429]);
}
