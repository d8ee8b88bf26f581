//! The answers for gateways that accept only 2xx, 401 and 403.

use serde_json::Value;

use crate::server::{Server, send};

#[tokio::test]
async fn refusal_is_403_with_the_real_status() {
    let rules = "
limits: [{ name: minute, quota: 1/minute fixed_window }]
routes:
  - match: { path: /private }
    limits: [{ name: user, quota: 1/minute, key: bearer }]
block: [{ path: /secret }]
";
    let server = Server::start(rules).await;
    let ask = |target: &str, client: &str| {
        let path = format!("{}/v1/auth?status=403", server.address);
        let ask = server.client.get(path).header("X-Forwarded-Uri", target);
        let ask = ask
            .header("X-Forwarded-Method", "GET")
            .header("X-Forwarded-Host", "a");
        send(ask.header("X-Forwarded-For", client))
    };
    let admitted = ask("/", "192.0.2.1").await;
    assert_eq!(admitted.status(), 204);
    assert!(!admitted.headers().contains_key("tower-quota-status"));

    let refused = ask("/", "192.0.2.1").await;
    assert_eq!(refused.status(), 403);
    assert_eq!(refused.headers()["tower-quota-status"], "429");
    assert_eq!(refused.headers()["retry-after"], "60");
    let problem = refused.headers()["tower-quota-problem"]
        .to_str()
        .unwrap()
        .to_owned();
    let problem: Value = serde_json::from_str(&problem).unwrap();
    assert_eq!(problem["status"], 429);
    assert_eq!(problem, refused.json::<Value>().await.unwrap());

    let blocked = ask("/secret", "192.0.2.1").await;
    assert_eq!(
        (
            blocked.status().as_u16(),
            &blocked.headers()["tower-quota-status"]
        ),
        (403, &"403".parse().unwrap())
    );
    let anonymous = ask("/private", "192.0.2.2").await;
    assert_eq!(anonymous.status(), 401);
    assert_eq!(anonymous.headers()["www-authenticate"], "Bearer");
}

#[tokio::test]
async fn query_of_a_client_is_ignored() {
    // Caddy keeps the query of the client when it rewrites the path.
    let server = Server::start("limits: [{ name: minute, quota: 3/minute }]").await;
    for (query, expected) in [
        ("a=b", 204),
        ("status=", 204),
        ("%00", 204),
        ("status=403&a", 429),
    ] {
        let mut ask = server.ask("192.0.2.1").build().unwrap();
        ask.url_mut().set_query(Some(query));
        let response = server.client.execute(ask).await.unwrap();
        assert_eq!(response.status(), expected, "{query}");
    }
}

#[tokio::test]
async fn unreadable_request_is_403_too() {
    let server = Server::start("limits: [{ name: minute, quota: 1/minute }]").await;
    let ask = server
        .client
        .get(format!("{}/v1/auth?status=403", server.address));
    let response = send(
        ask.header("X-Forwarded-Method", "GET")
            .header("X-Forwarded-Uri", "/<a>"),
    )
    .await;
    assert_eq!(response.status(), 403);
    assert_eq!(response.headers()["tower-quota-status"], "400");
}
