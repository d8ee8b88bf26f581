//! Requests to an axum app and to gRPC services, over real sockets.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::connect_info::MockConnectInfo;
use axum::routing::{any, get};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
#[cfg(feature = "tonic")]
use tower::ServiceExt;
use tower_quota::key::{self, KeyExtractor, Proxies, Source};
use tower_quota::{Limit, MemoryStore, MissingKey, Policy, Quota, RateLimitLayer, when};
use tower_quota_testkit::ManualClock;

/// Returns a layer that admits each client once.
fn once(by: impl KeyExtractor) -> RateLimitLayer<MemoryStore> {
    layer(
        Policy::new().limit(
            Limit::new("once", Quota::per_minute(1))
                .by(by)
                .when_missing(MissingKey::Refuse),
        ),
    )
}

fn layer(policy: Policy) -> RateLimitLayer<MemoryStore> {
    RateLimitLayer::new(
        MemoryStore::with_clock(1_000, ManualClock::default()),
        policy,
    )
}

/// Serves an app on a free port.
async fn served(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        axum::serve(
            listener,
            app.into_make_service_with_connect_info::<SocketAddr>(),
        )
        .await
        .unwrap();
    });
    address
}

fn root() -> Router {
    Router::new().route("/", get(|| async {}))
}

/// Returns the status of the response to a request with these header lines.
async fn status(app: SocketAddr, path: &str, lines: &[&str]) -> u16 {
    status_from("127.0.0.1", app, path, lines).await
}

/// Returns the status for a client with this local address.
async fn status_from(client: &str, app: SocketAddr, path: &str, lines: &[&str]) -> u16 {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\n{lines}");
    status_of_head(client, app, &head).await
}

async fn status_of_head(client: &str, app: SocketAddr, head: &str) -> u16 {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{client}:0").parse().unwrap()).unwrap();
    let mut stream = socket.connect(app).await.unwrap();
    let request = format!("{head}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn client_behind_a_proxy_keeps_its_address() {
    let local = Proxies::networks(["127.0.0.0/8"]);
    let app =
        served(root().layer(once(key::client_ip().behind(local, Source::XForwardedFor)))).await;
    assert_eq!(status(app, "/", &["x-forwarded-for: 192.0.2.1"]).await, 200);
    for forged in [
        &["x-forwarded-for: 198.51.100.1, 192.0.2.1"] as &[&str],
        &["x-forwarded-for: 198.51.100.2, 192.0.2.1:99"],
        &[
            "x-forwarded-for: 198.51.100.3",
            "x-forwarded-for: 192.0.2.1",
        ],
        &["x-forwarded-for: junk, ::ffff:192.0.2.1"],
        &["x-forwarded-for: 192.0.2.1, 127.0.0.9"],
        &["forwarded: for=198.51.100.4", "x-forwarded-for: 192.0.2.1"],
        &["x-real-ip: 198.51.100.4", "x-forwarded-for: 192.0.2.1"],
    ] {
        assert_eq!(status(app, "/", forged).await, 429, "{forged:?}");
    }
    assert_eq!(
        status(app, "/", &["x-forwarded-for: 192.0.2.2"]).await,
        200,
        "another client"
    );
    // Requests with unreadable lists are counted as one client: the proxy.
    assert_eq!(status(app, "/", &[]).await, 200);
    for spoiled in [
        "x-forwarded-for: unknown",
        "x-forwarded-for: fe80::1%eth0",
        "x-forwarded-for: ,",
        "x-y: z",
    ] {
        assert_eq!(status(app, "/", &[spoiled]).await, 429, "{spoiled}");
    }
}

#[tokio::test]
async fn unknown_methods_share_one_counter() {
    let app = Router::new()
        .route("/", any(|| async {}))
        .layer(once(key::all((key::client_ip(), key::method()))));
    let app = served(app).await;
    for (method, expected) in [
        ("GET", 200),
        ("PROPFIND", 200),
        ("REPORT", 429),
        ("QUERY", 429),
        ("propfind", 429),
        ("POST", 200),
        ("GET", 429),
    ] {
        let head = format!("{method} / HTTP/1.1\r\nhost: test\r\n");
        let status = status_of_head("127.0.0.1", app, &head).await;
        assert_eq!(status, expected, "{method}");
    }
}

#[tokio::test]
async fn direct_client_cannot_forge_its_address() {
    let elsewhere = Proxies::networks(["10.0.0.0/8", "::ffff:10.0.0.0/104"]);
    for source in [
        Source::XForwardedFor,
        Source::Forwarded,
        Source::CfConnectingIp,
    ] {
        let app =
            served(root().layer(once(key::client_ip().behind(elsewhere.clone(), source)))).await;
        assert_eq!(
            status(app, "/", &["x-forwarded-for: 198.51.100.1"]).await,
            200
        );
        for forged in [
            "x-forwarded-for: 10.0.0.1",
            "forwarded: for=198.51.100.2",
            "cf-connecting-ip: 198.51.100.3",
        ] {
            assert_eq!(status(app, "/", &[forged]).await, 429, "{forged}");
        }
    }
}

#[tokio::test]
async fn route_parameter_is_read_from_the_path() {
    let handler = || get(|| async {});
    let tenants = Router::new()
        .route("/{tenant}/users/{id}", handler())
        .route("/files/{*id}", handler());
    let app = tenants
        .clone()
        .nest("/api/{version}", tenants)
        .route("/plain", handler())
        .route("/v-{id}", handler());
    let app = served(app.layer(once(key::path_parameter("id")))).await;

    for (path, expected) in [
        ("/acme/users/1", 200),
        // The same id: spelled differently, of another tenant, under a nest.
        ("/acme/users/%31?x=y", 429),
        ("/other/users/1", 429),
        ("/api/v2/acme/users/1", 429),
        ("/api/v2/acme/users/2", 200),
        ("/acme/users/2", 429),
        ("/files/a/b", 200),
        ("/files/a/c", 200),
        ("/api/v3/files/a/b", 429),
        // The text before the parameter does not belong to the parameter.
        ("/v-1", 429),
        ("/v-3", 200),
        ("/acme/users/3", 429),
        // No such parameter, and no route.
        ("/plain", 400),
        ("/nowhere", 400),
    ] {
        assert_eq!(status(app, path, &[]).await, expected, "{path}");
    }
}

#[tokio::test]
async fn nested_router_sees_the_same_parameters() {
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

#[tokio::test]
async fn mock_connect_info_is_the_peer() {
    let app = root()
        .layer(once(key::client_ip()))
        .layer(MockConnectInfo(SocketAddr::from(([192, 0, 2, 1], 80))));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    assert_eq!(status(address, "/", &[]).await, 200);
    assert_eq!(status(address, "/", &[]).await, 429);
}

#[tokio::test]
async fn api_key_else_address_is_one_limit() {
    let app = served(root().layer(once(key::header("x-api-key").or(key::client_ip())))).await;
    for key in ["x-api-key: ann", "x-api-key: bob", "x-no-key: x"] {
        assert_eq!(status(app, "/", &[key]).await, 200, "{key}");
        assert_eq!(status(app, "/", &[key]).await, 429, "{key}");
    }
    // A client without a key that spends its counter does not block others without one.
    assert_eq!(status_from("127.0.0.2", app, "/", &[]).await, 200);
    assert_eq!(status_from("127.0.0.2", app, "/", &[]).await, 429);
}

#[tokio::test]
async fn listed_key_is_blocked_beside_another() {
    let leaked = || when::key_in(key::header("x-api-key"), ["leaked"]);
    let app = served(root().layer(layer(Policy::new().block(leaked())))).await;
    let [leaked, other] = ["x-api-key: leaked", "x-api-key: other"];
    for (keys, expected) in [
        (&[leaked] as &[&str], 403),
        (&[leaked, other], 403),
        (&[other, leaked], 403),
        (&[other, other], 200),
        (&[], 200),
    ] {
        assert_eq!(status(app, "/", keys).await, expected, "{keys:?}");
    }
}

#[tokio::test]
async fn listed_key_beside_another_frees_nothing() {
    let vip = || when::key_in(key::header("x-api-key"), ["vip"]);
    let vip_key = "x-api-key: vip";
    let limit = || Limit::new("once", Quota::per_minute(1));
    for policy in [
        Policy::new().allow(vip()).limit(limit()),
        Policy::new().skip(vip()).limit(limit()),
        Policy::new().limit(limit().unless(vip())),
        Policy::new().limit(limit().when(when::not(vip()))),
        Policy::new().limit(limit().when(when::not(when::not(when::not(vip()))))),
    ] {
        let app = served(root().layer(layer(policy))).await;
        for _ in 0..3 {
            assert_eq!(status(app, "/", &[vip_key]).await, 200);
        }
        assert_eq!(status(app, "/", &[vip_key, "x-api-key: x"]).await, 200);
        assert_eq!(status(app, "/", &[vip_key, "x-api-key: y"]).await, 429);
    }
    // A limit for a listed key applies if another key is sent too.
    let app = served(root().layer(layer(Policy::new().limit(limit().when(vip()))))).await;
    assert_eq!(status(app, "/", &[vip_key]).await, 200);
    assert_eq!(status(app, "/", &[vip_key, "x-api-key: x"]).await, 429);
    assert_eq!(status(app, "/", &["x-api-key: x"]).await, 200);
}

#[tokio::test]
async fn path_condition_has_the_prefix_inside_nest() {
    let limited = |pattern: &str| {
        let limit = Limit::new("items", Quota::per_minute(1)).when(when::path(pattern));
        Router::new()
            .route("/items", get(|| async {}))
            .layer(layer(Policy::new().limit(limit)))
    };
    for nested in [
        Router::new().nest("/api", limited("/api/items")),
        Router::new().nest_service("/api", limited("/api/items")),
    ] {
        let app = served(nested).await;
        assert_eq!(status(app, "/api/items", &[]).await, 200);
        assert_eq!(status(app, "/api/items", &[]).await, 429);
    }
    let app = served(limited("/items")).await;
    assert_eq!(status(app, "/items", &[]).await, 200);
    assert_eq!(status(app, "/items", &[]).await, 429);
}

#[cfg(feature = "tonic")]
#[tokio::test]
async fn grpc_limit_counts_any_content_type() {
    let calls = |name: &'static str| Limit::new(name, Quota::per_hour(3));
    for limit in [
        calls("service").when(when::grpc_service("grpc.health.v1.Health")),
        calls("method").when(when::grpc_method("grpc.health.v1.Health/Check")),
        calls("by method")
            .by(key::grpc_method())
            .when_missing(MissingKey::Skip),
        calls("by service")
            .by(key::grpc_service())
            .when_missing(MissingKey::Skip),
    ] {
        let (_, health) = tonic_health::server::health_reporter();
        let app = tonic::service::Routes::new(health).into_axum_router();
        let app =
            app.layer(layer(Policy::new().limit(limit)).protocol(tower_quota::Protocol::Both));
        let address = served(app).await;
        let channel = tonic::transport::Endpoint::new(format!("http://{address}"))
            .unwrap()
            .connect()
            .await
            .unwrap();
        let mut statuses = Vec::new();
        for content_type in [
            "text/plain",
            "application/grpc",
            "text/html",
            "application/grpc",
            "text/plain",
        ] {
            // An empty message is a frame of five zeros.
            let body = http_body_util::Full::new(bytes::Bytes::from_static(&[0; 5]));
            let call = http::Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
                .header("content-type", content_type)
                .body(tonic::body::Body::new(body))
                .unwrap();
            let answer = channel.clone().oneshot(call).await.unwrap();
            let grpc_status = answer
                .headers()
                .get("grpc-status")
                .map(|status| status.to_str().unwrap().to_owned());
            statuses.push((answer.status().as_u16(), grpc_status));
        }
        assert!(
            statuses[..3]
                .iter()
                .all(|(status, refused)| *status == 200 && refused.is_none()),
            "{statuses:?}"
        );
        assert_eq!(statuses[3], (200, Some(String::from("8"))));
        assert_eq!(statuses[4].0, 429);
    }
}
