//! Forged addresses and parameters of routes, sent to an axum app over real sockets.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower_quota::key::{self, KeyExtractor, Proxies, Source};
use tower_quota::{Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer};
use tower_quota_testkit::ManualClock;

/// Lets each client pass once.
fn once(by: impl KeyExtractor) -> RateLimitLayer<MemoryStore> {
    let limit = Limit::new("once", Quota::per_minute(1)).by(by).when_missing(MissingKey::Refuse);
    RateLimitLayer::new(MemoryStore::with_clock(1_000, ManualClock::default()), Policy::new().limit(limit))
}

/// An app on a free port.
async fn served(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await.unwrap();
    });
    address
}

fn root() -> Router {
    Router::new().route("/", get(|| async {}))
}

/// The status of the answer to a request with these lines.
async fn status(app: SocketAddr, path: &str, lines: &[&str]) -> u16 {
    let mut stream = TcpStream::connect(app).await.unwrap();
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{lines}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_client_behind_the_proxy_cannot_change_its_address() {
    let local = Proxies::networks(["127.0.0.0/8"]);
    let app = served(root().layer(once(key::client_ip().behind(local, Source::XForwardedFor)))).await;
    assert_eq!(status(app, "/", &["x-forwarded-for: 192.0.2.1"]).await, 200);
    for forged in [
        &["x-forwarded-for: 198.51.100.1, 192.0.2.1"] as &[&str],
        &["x-forwarded-for: 198.51.100.2, 192.0.2.1:99"],
        &["x-forwarded-for: 198.51.100.3", "x-forwarded-for: 192.0.2.1"],
        &["x-forwarded-for: junk, ::ffff:192.0.2.1"],
        &["x-forwarded-for: 192.0.2.1, 127.0.0.9"],
        &["forwarded: for=198.51.100.4", "x-forwarded-for: 192.0.2.1"],
        &["x-real-ip: 198.51.100.4", "x-forwarded-for: 192.0.2.1"],
    ] {
        assert_eq!(status(app, "/", forged).await, 429, "{forged:?}");
    }
    assert_eq!(status(app, "/", &["x-forwarded-for: 192.0.2.2"]).await, 200, "another client");
    // All that cannot be believed is one client: the proxy.
    assert_eq!(status(app, "/", &[]).await, 200);
    for spoiled in ["x-forwarded-for: unknown", "x-forwarded-for: fe80::1%eth0", "x-forwarded-for: ,", "x-y: z"] {
        assert_eq!(status(app, "/", &[spoiled]).await, 429, "{spoiled}");
    }
}

#[tokio::test]
async fn a_client_who_connects_directly_is_believed_nothing() {
    let elsewhere = Proxies::networks(["10.0.0.0/8", "::ffff:10.0.0.0/104"]);
    for source in [Source::XForwardedFor, Source::Forwarded, Source::CfConnectingIp] {
        let app = served(root().layer(once(key::client_ip().behind(elsewhere.clone(), source)))).await;
        assert_eq!(status(app, "/", &["x-forwarded-for: 198.51.100.1"]).await, 200);
        for forged in ["x-forwarded-for: 10.0.0.1", "forwarded: for=198.51.100.2", "cf-connecting-ip: 198.51.100.3"] {
            assert_eq!(status(app, "/", &[forged]).await, 429, "{forged}");
        }
    }
}

#[tokio::test]
async fn parameters_of_routes_are_read_from_the_path() {
    let handler = || get(|| async {});
    let tenants = Router::new().route("/{tenant}/users/{id}", handler()).route("/files/{*id}", handler());
    let app = tenants.clone().nest("/api/{version}", tenants).route("/plain", handler()).route("/v-{id}", handler());
    let app = served(app.layer(once(key::path_parameter("id")))).await;

    assert_eq!(status(app, "/acme/users/1", &[]).await, 200);
    assert_eq!(status(app, "/acme/users/%31?x=y", &[]).await, 429, "spelled differently");
    assert_eq!(status(app, "/other/users/1", &[]).await, 429, "another tenant's");
    assert_eq!(status(app, "/api/v2/acme/users/1", &[]).await, 429, "the same under a nest");
    assert_eq!(status(app, "/api/v2/acme/users/2", &[]).await, 200);
    assert_eq!(status(app, "/acme/users/2", &[]).await, 429);
    assert_eq!(status(app, "/files/a/b", &[]).await, 200);
    assert_eq!(status(app, "/files/a/c", &[]).await, 200);
    assert_eq!(status(app, "/api/v3/files/a/b", &[]).await, 429);
    assert_eq!(status(app, "/v-1", &[]).await, 429, "what stands before the parameter is none of it");
    assert_eq!(status(app, "/v-3", &[]).await, 200);
    assert_eq!(status(app, "/acme/users/3", &[]).await, 429);
    assert_eq!(status(app, "/plain", &[]).await, 400, "no such parameter");
    assert_eq!(status(app, "/nowhere", &[]).await, 400, "no route");
}

#[tokio::test]
async fn a_limited_router_that_is_nested_sees_the_same_parameters() {
    let users = Router::new().route("/users/{id}", get(|| async {}));
    for name in ["id", "version"] {
        let limited = users.clone().layer(once(key::path_parameter(name)));
        let app = served(Router::new().nest("/api/{version}", limited)).await;
        let [first, same, other] = match name {
            "id" => ["/api/v1/users/1", "/api/v2/users/1", "/api/v1/users/2"],
            _ => ["/api/v1/users/1", "/api/v1/users/2", "/api/v2/users/1"],
        };
        assert_eq!(status(app, first, &[]).await, 200, "{name}");
        assert_eq!(status(app, same, &[]).await, 429, "{name}");
        assert_eq!(status(app, other, &[]).await, 200, "{name}");
    }
}
