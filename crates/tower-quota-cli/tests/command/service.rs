//! A service with an admin API, in the process of the test.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use http::Request;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;
use tower_quota::{MemoryStore, Policy, RateLimitLayer};
use tower_quota_admin::{AdminOptions, router};
use tower_quota_dev::TlsFiles;
use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, NewVersion, RuleStore, WithoutRules};

pub(crate) const TOKEN: &str = "a token of a test, 32 bytes long";

/// A limited service, with the admin API on a separate port.
pub(crate) struct TestService {
    runtime: Arc<Runtime>,
    app: Router,
    store: Arc<MemoryRules>,
    pub(crate) admin: String,
}

impl TestService {
    pub(crate) fn start() -> Self {
        let runtime = Arc::new(
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap(),
        );
        let store = Arc::new(MemoryRules::new());
        let rules = Arc::clone(&store);
        let (app, admin) = runtime.block_on(async {
            let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new()).count_busy_clients();
            let live = LiveRules::start_shared(
                layer.handle(),
                rules,
                LiveOptions::new().without_rules(WithoutRules::Refuse),
            )
            .await
            .unwrap();
            let options = AdminOptions::new()
                .bearer_token("on-call", TOKEN)
                .allow_showing_keys();
            let admin = router(live, options).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(async move {
                axum::serve(
                    listener,
                    admin.into_make_service_with_connect_info::<SocketAddr>(),
                )
                .await
                .unwrap();
            });
            (
                Router::new()
                    .route("/", get(|| async { "hello" }))
                    .layer(layer),
                format!("http://{address}"),
            )
        });
        Self {
            runtime,
            app,
            store,
            admin,
        }
    }

    /// Stores rules without a check, as a program of an earlier version could.
    pub(crate) fn store(&self, rules: &str) {
        let put = self.store.put(None, NewVersion::new(rules, "ann"));
        self.runtime.block_on(put).unwrap();
    }

    /// Serves the admin API over TLS too, and returns the address.
    pub(crate) fn serve_tls(&self, files: &TlsFiles) -> String {
        let certificates = vec![CertificateDer::from_pem_file(files.certificate()).unwrap()];
        let key = PrivateKeyDer::from_pem_file(files.key()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = config
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .unwrap();
        let (acceptor, plain) = (
            TlsAcceptor::from(Arc::new(config)),
            self.admin.replace("http://", ""),
        );
        let listener = self
            .runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let port = listener.local_addr().unwrap().port();
        self.runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (acceptor, plain) = (acceptor.clone(), plain.clone());
                tokio::spawn(async move {
                    // A client without trust in the certificate aborts the handshake.
                    let Ok(mut client) = acceptor.accept(client).await else {
                        return;
                    };
                    let mut service = TcpStream::connect(plain).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut service).await;
                });
            }
        });
        format!("https://localhost:{port}")
    }

    /// Sends a request from a client, and returns the status of the response.
    pub(crate) fn ask(&self, api_key: &str) -> u16 {
        self.send(api_key).status().as_u16()
    }

    /// Sends a request from a client.
    pub(crate) fn send(&self, api_key: &str) -> Response {
        let request = Request::get("/")
            .header("x-api-key", api_key)
            .body(Body::empty())
            .unwrap();
        self.runtime
            .block_on(self.app.clone().oneshot(request))
            .unwrap()
    }
}
