//! TLS on every port, with certificates that change while the server runs.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::{DOCUMENT, Files, Server, get, text, until};

/// An authority, which signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// A certificate and its key, in PEM.
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    pub(crate) fn sign(&self, name: &str) -> Signed {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Signed {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Connects to a server of this name, which trusts the authority. Returns the response to a request.
async fn ask(
    address: SocketAddr,
    name: &'static str,
    trusted: &Authority,
    own: Option<&Signed>,
) -> Option<String> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(trusted.certificate.as_bytes());
    roots.add(root.unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        None => config.with_no_client_auth(),
        Some(own) => {
            let chain = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
            config.with_client_auth_cert(vec![chain], key).unwrap()
        }
    };
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from(name).unwrap();
    let mut stream = connector.connect(name, stream).await.ok()?;
    let request = b"GET /healthz HTTP/1.1\r\nhost: server\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await.ok()?;
    Some(response)
}

fn write(files: &Files, signed: &Signed) {
    files.write("key.pem", &signed.key);
    files.write("cert.pem", &signed.certificate);
}

/// Waits until the server has read changed certificates so many times, with this result.
async fn until_read(server: &Server, result: &str, times: u32) {
    let line = format!(
        "tower_quota_server_certificate_reloads_total{{port=\"http\",result=\"{result}\"}} {times}\n"
    );
    let admin = server.admin();
    until(&line, || get(admin, "/metrics").1.contains(&line)).await;
}

#[tokio::test]
async fn changed_certificate_is_served_and_bad_one_is_not() {
    let (files, authority) = (Files::new(), Authority::new());
    let rules = files.write("rules.yaml", DOCUMENT);
    write(&files, &authority.sign("first.internal"));
    let (certificate, key) = (files.path("cert.pem"), files.path("key.pem"));
    let flags = [
        "--http-tls-cert",
        text(&certificate),
        "--http-tls-key",
        text(&key),
    ];
    let server = Server::start(&[&["--rules", text(&rules)], &flags[..]].concat());
    let http = server.http();
    let response = ask(http, "first.internal", &authority, None).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert_eq!(ask(http, "second.internal", &authority, None).await, None);

    let bad = Signed {
        certificate: "-----BEGIN CERTIFICATE-----\nbad\n".into(),
        ..authority.sign("first.internal")
    };
    files.write("cert.pem", &bad.certificate);
    until_read(&server, "rejected", 1).await;
    assert!(
        ask(http, "first.internal", &authority, None)
            .await
            .is_some()
    );

    write(&files, &authority.sign("second.internal"));
    until_read(&server, "applied", 1).await;
    assert!(
        ask(http, "second.internal", &authority, None)
            .await
            .is_some()
    );
    assert_eq!(ask(http, "first.internal", &authority, None).await, None);
}

#[tokio::test]
async fn clients_need_a_certificate_of_the_authority() {
    let (files, authority, other) = (Files::new(), Authority::new(), Authority::new());
    let rules = files.write("rules.yaml", DOCUMENT);
    write(&files, &authority.sign("server.internal"));
    let ca = files.write("ca.pem", &authority.certificate);
    let (certificate, key) = (files.path("cert.pem"), files.path("key.pem"));
    let (client, stranger) = (authority.sign("client"), other.sign("client"));
    let paths = [text(&certificate), text(&key), text(&ca)];
    let variables = ["HTTP", "ADMIN"].map(|port| {
        ["CERT", "KEY", "CLIENT_CA"].map(|file| format!("TOWER_QUOTA_{port}_TLS_{file}"))
    });
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .flat_map(|names| names.iter().map(String::as_str).zip(paths))
        .collect();
    let server = Server::start_with(&["--rules", text(&rules)], &variables);
    for address in [server.http(), server.admin()] {
        let name = "server.internal";
        assert!(
            ask(address, name, &authority, Some(&client))
                .await
                .is_some()
        );
        assert_eq!(ask(address, name, &authority, Some(&stranger)).await, None);
        assert_eq!(ask(address, name, &authority, None).await, None);
    }
}

#[tokio::test]
async fn grpc_is_served_by_tls() {
    use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_client::HealthClient;

    let (files, authority) = (Files::new(), Authority::new());
    let rules = files.write("rules.yaml", DOCUMENT);
    write(&files, &authority.sign("server.internal"));
    let ca = files.write("ca.pem", &authority.certificate);
    let (certificate, key) = (files.path("cert.pem"), files.path("key.pem"));
    // As Envoy Gateway names them.
    let variables = [
        ("GRPC_SERVER_USE_TLS", "true"),
        ("GRPC_SERVER_TLS_CERT", text(&certificate)),
        ("GRPC_SERVER_TLS_KEY", text(&key)),
        ("GRPC_SERVER_TLS_CA_CERT", text(&ca)),
    ];
    let server = Server::start_with(&["--rules", text(&rules)], &variables);
    let client = authority.sign("client");
    let check = async |tls: ClientTlsConfig| {
        let channel = Channel::from_shared(format!("https://{}", server.grpc())).unwrap();
        let channel = channel
            .tls_config(tls.domain_name("server.internal"))
            .unwrap();
        let mut health = HealthClient::new(channel.connect().await.ok()?);
        let answer = health.check(HealthCheckRequest::default()).await.ok()?;
        Some(answer.into_inner().status)
    };
    let trusting =
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&authority.certificate));
    let identity = Identity::from_pem(&client.certificate, &client.key);
    assert_eq!(check(trusting.clone().identity(identity)).await, Some(1));
    assert_eq!(check(trusting).await, None);
}
