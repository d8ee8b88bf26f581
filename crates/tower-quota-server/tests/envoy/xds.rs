//! Limits of an xDS server.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use prost::Message;
use prost_types::{Any, Struct};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};
use tower_quota_dev::{Fault, FaultProxy};
use tower_quota_server::envoy::{EnvoyConfig, EnvoySource, XdsOptions};
use tower_quota_server::messages::config::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitReplace, RateLimitUnit,
};
use tower_quota_server::messages::discovery::aggregated_discovery_service_server::{
    AggregatedDiscoveryService, AggregatedDiscoveryServiceServer,
};
use tower_quota_server::messages::discovery::{DiscoveryRequest, DiscoveryResponse};

use crate::support::{World, request};

const TYPE: &str = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// A stream from the server to a client.
type Responses = mpsc::Sender<Result<DiscoveryResponse, Status>>;

/// An xDS server, which passes on what it receives.
struct ControlPlane {
    address: SocketAddr,
    runtime: Runtime,
    streams: mpsc::UnboundedReceiver<Responses>,
    requests: mpsc::UnboundedReceiver<DiscoveryRequest>,
}

struct Service {
    streams: mpsc::UnboundedSender<Responses>,
    requests: mpsc::UnboundedSender<DiscoveryRequest>,
}

#[tonic::async_trait]
impl AggregatedDiscoveryService for Service {
    type StreamAggregatedResourcesStream = ReceiverStream<Result<DiscoveryResponse, Status>>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let (responses, outgoing) = mpsc::channel(1);
        self.streams.send(responses).unwrap();
        let (mut incoming, requests) = (request.into_inner(), self.requests.clone());
        tokio::spawn(async move {
            while let Ok(Some(request)) = incoming.message().await {
                // A test may not read all requests.
                let _ = requests.send(request);
            }
        });
        Ok(Response::new(ReceiverStream::new(outgoing)))
    }
}

impl ControlPlane {
    fn start(address: &str, tls: Option<ServerTlsConfig>) -> Self {
        let runtime = Runtime::new().unwrap();
        let guard = runtime.enter();
        let listener = std::net::TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = TcpListenerStream::new(TcpListener::from_std(listener).unwrap());
        let (streams, new_streams) = mpsc::unbounded_channel();
        let (requests, new_requests) = mpsc::unbounded_channel();
        let mut server = Server::builder();
        if let Some(tls) = tls {
            server = server.tls_config(tls).unwrap();
        }
        let service = AggregatedDiscoveryServiceServer::new(Service { streams, requests });
        let service = service.max_decoding_message_size(64 << 10);
        tokio::spawn(server.add_service(service).serve_with_incoming(listener));
        drop(guard);
        Self {
            address,
            runtime,
            streams: new_streams,
            requests: new_requests,
        }
    }

    /// Waits for a new stream, and for its first request.
    async fn stream(&mut self) -> Responses {
        let stream = self.streams.recv().await.unwrap();
        let first = self.request().await;
        assert_eq!(first.type_url, TYPE);
        assert_eq!(first.node.unwrap().id, "envoy-ratelimit");
        let rest = (first.version_info, first.response_nonce, first.error_detail);
        assert_eq!(rest, (String::new(), String::new(), None));
        assert!(first.resource_names.is_empty(), "all resources");
        stream
    }

    async fn request(&mut self) -> DiscoveryRequest {
        self.requests.recv().await.unwrap()
    }

    /// Ends the server with all of its connections.
    async fn stop(self) {
        let runtime = self.runtime;
        let stopped = move || runtime.shutdown_timeout(Duration::from_secs(10));
        tokio::task::spawn_blocking(stopped).await.unwrap();
    }
}

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    xds: XdsOptions,
}

fn options(server: SocketAddr, flags: &[&str]) -> XdsOptions {
    let server = server.to_string();
    let fixed = [
        "test",
        "--xds-server",
        &server,
        "--xds-node",
        "envoy-ratelimit",
    ];
    let pause = ["--xds-pause", "30ms"];
    let flags = fixed.iter().chain(&pause).chain(flags);
    Flags::try_parse_from(flags).unwrap().xds
}

fn source(server: &ControlPlane) -> EnvoySource {
    EnvoySource::xds(&options(server.address, &[]), false).unwrap()
}

/// A limit per hour of a key, in the form in which Envoy Gateway sends it.
fn limit(key: &str, requests: u32) -> RateLimitDescriptor {
    RateLimitDescriptor {
        key: key.to_owned(),
        rate_limit: Some(RateLimitPolicy {
            unit: RateLimitUnit::Hour.into(),
            requests_per_unit: requests,
            ..RateLimitPolicy::default()
        }),
        ..RateLimitDescriptor::default()
    }
}

fn resource(domain: &str, descriptors: Vec<RateLimitDescriptor>) -> Any {
    let config = RateLimitConfig {
        name: format!("listener of {domain}"),
        domain: domain.to_owned(),
        descriptors,
    };
    Any {
        type_url: TYPE.to_owned(),
        value: config.encode_to_vec(),
    }
}

fn response(version: &str, resources: Vec<Any>) -> Result<DiscoveryResponse, Status> {
    Ok(DiscoveryResponse {
        version_info: version.to_owned(),
        resources,
        type_url: TYPE.to_owned(),
        nonce: format!("nonce {version}"),
    })
}

fn decode(resources: &[Any]) -> EnvoyConfig {
    EnvoyConfig::decode(resources, false).unwrap_or_else(|problems| panic!("{problems}"))
}

fn problems(resources: &[Any]) -> String {
    EnvoyConfig::decode(resources, false)
        .unwrap_err()
        .to_string()
}

#[tokio::test]
async fn good_responses_are_accepted() {
    let mut server = ControlPlane::start("127.0.0.1:0", None);
    let mut source = source(&server);
    let following = tokio::spawn(async move {
        let first = source.next().await.unwrap();
        let second = source.next().await.unwrap();
        let third = source.next().await.unwrap();
        (first, second, third, source)
    });
    let stream = server.stream().await;
    let first = vec![resource("a", vec![limit("k", 5)])];
    let second = vec![resource("a", vec![limit("k", 6)]), resource("b", vec![])];
    for (version, resources) in [("1", first), ("2", second), ("3", vec![])] {
        stream.send(response(version, resources)).await.unwrap();
        let answer = server.request().await;
        assert_eq!(answer.error_detail, None);
        let answer = (answer.version_info, answer.response_nonce);
        assert_eq!(answer, (version.to_owned(), format!("nonce {version}")));
    }
    // The source lives until here, so that its last answer is sent.
    let (first, second, third, _) = following.await.unwrap();
    let remaining = async |config| {
        let world = World::new("a", config);
        let answer = world.door.decide(&request("a", &["k=x"])).await;
        answer.unwrap().statuses[0].limit_remaining
    };
    assert_eq!(remaining(first).await, 4);
    assert_eq!(second.domains(), 2);
    assert_eq!(remaining(second).await, 5);
    // An empty list means that there are no limits.
    assert_eq!((third.domains(), third.limits()), (0, 0));
    server.stop().await;
}

#[tokio::test]
async fn bad_responses_are_refused_with_the_reason() {
    let mut server = ControlPlane::start("127.0.0.1:0", None);
    let mut source = source(&server);
    let following = tokio::spawn(async move {
        let mut answers = Vec::new();
        for _ in 0..5 {
            answers.push(source.next().await.map(|config| config.limits()));
        }
        (answers, source)
    });
    let stream = server.stream().await;
    let mut other = response("4", vec![]).unwrap();
    other.type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
    let twice = vec![resource("a", vec![]), resource("a", vec![])];
    for (sent, accepted, reason) in [
        (
            response("1", vec![resource("a", vec![limit("k", 5)])]),
            "1",
            "",
        ),
        (
            response("2", vec![resource("a", vec![limit("", 5)])]),
            "1",
            "listener of a: in \"a.\", the descriptor has no key: add",
        ),
        (
            response("3", twice),
            "1",
            "the domain \"a\" is also in listener of a: give",
        ),
        (
            Ok(other),
            "1",
            "the type \"type.googleapis.com/envoy.config.cluster.v3.Cluster\" is unknown",
        ),
        (
            response("5", vec![resource("a", vec![limit("k", 7), limit("l", 7)])]),
            "5",
            "",
        ),
    ] {
        stream.send(sent).await.unwrap();
        let answer = server.request().await;
        assert_eq!(answer.version_info, accepted);
        let (code, message) = answer
            .error_detail
            .map_or((0, String::new()), |error| (error.code, error.message));
        assert_eq!(code, if reason.is_empty() { 0 } else { 3 });
        assert!(message.contains(reason), "{message}");
    }
    let (answers, _) = following.await.unwrap();
    let limits: Vec<_> = answers.into_iter().map(Result::ok).collect();
    assert_eq!(limits, [Some(1), None, None, None, Some(2)]);
    server.stop().await;
}

#[tokio::test]
async fn lost_server_is_reported_once() {
    let mut server = ControlPlane::start("127.0.0.1:0", None);
    let address = server.address.to_string();
    let mut source = source(&server);
    let (answers, mut answered) = mpsc::unbounded_channel();
    let following = tokio::spawn(async move {
        while answers
            .send(source.next().await.map(|config| config.limits()))
            .is_ok()
        {}
    });
    let resources = vec![resource("a", vec![limit("k", 5)])];
    let stream = server.stream().await;
    stream.send(response("9", resources.clone())).await.unwrap();
    assert_eq!(answered.recv().await.unwrap().unwrap(), 1);
    for _ in 0..2 {
        server.stop().await;
        let problems = answered.recv().await.unwrap().unwrap_err().to_string();
        assert!(problems.starts_with(&format!("{address}: ")), "{problems}");
        server = ControlPlane::start(&address, None);
        // The version of a server that has started again may be an old one.
        let stream = server.stream().await;
        stream.send(response("1", resources.clone())).await.unwrap();
        // Between, further attempts have failed without a report.
        assert_eq!(answered.recv().await.unwrap().unwrap(), 1);
    }
    following.abort();
    server.stop().await;
}

#[tokio::test]
async fn silent_server_is_reported() {
    let mut server = ControlPlane::start("127.0.0.1:0", None);
    let proxy = FaultProxy::to(server.address.port());
    let mut options = options(([127, 0, 0, 1], proxy.port()).into(), &[]);
    options.keepalive = Duration::from_secs(1);
    let mut source = EnvoySource::xds(&options, false).unwrap();
    let answers = async {
        let mut open = Vec::new();
        while let Some(stream) = server.streams.recv().await {
            stream.send(response("1", vec![])).await.unwrap();
            open.push(stream);
        }
    };
    let report = async {
        // A busy machine may be silent too.
        while source.next().await.is_err() {}
        proxy.inflict(Fault::Stall);
        source.next().await.unwrap_err().to_string()
    };
    tokio::select! {
        () = answers => panic!("the server has ended"),
        problems = tokio::time::timeout(Duration::from_secs(60), report) => {
            let problems = problems.unwrap();
            assert!(problems.contains("the earlier limits stay"), "{problems}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn ended_and_failed_streams_are_opened_again() {
    let mut server = ControlPlane::start("127.0.0.1:0", None);
    let mut source = source(&server);
    let following = tokio::spawn(async move {
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(source.next().await);
        }
        answers
    });
    drop(server.stream().await);
    let stream = server.stream().await;
    stream
        .send(Err(Status::resource_exhausted("slow down")))
        .await
        .unwrap();
    let stream = server.stream().await;
    stream.send(response("1", vec![])).await.unwrap();
    drop(stream);
    let answers = following.await.unwrap();
    assert!(
        answers[0]
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains("has ended the stream")
    );
    // The failed stream belongs to the same outage.
    assert!(answers[1].is_ok());
    assert!(answers[2].is_err());
    server.stop().await;
}

#[tokio::test]
async fn large_response_is_read_within_the_bound() {
    let mut server = ControlPlane::start("127.0.0.1:0", None);
    // The reference's default, which means none.
    let options = options(server.address, &["--xds-bytes", "0"]);
    let mut source = EnvoySource::xds(&options, false).unwrap();
    let large = (0..10_000).map(|number| limit(&format!("{number:01100}"), 5));
    let large = resource("a", large.collect());
    assert!(large.value.len() > 10 << 20, "{}", large.value.len());
    let following = tokio::spawn(async move {
        let limits = source.next().await.unwrap().limits();
        (limits, source.next().await.unwrap_err().to_string())
    });
    let stream = server.stream().await;
    stream
        .send(response("1", vec![large.clone()]))
        .await
        .unwrap();
    assert_eq!(server.request().await.version_info, "1");
    stream
        .send(response("2", vec![large.clone(), large]))
        .await
        .unwrap();
    let (limits, problem) = following.await.unwrap();
    assert_eq!(limits, 10_000);
    assert!(problem.contains("too large"), "{problem}");
    server.stop().await;
}

/// Certificates for `localhost`, signed by an authority, and the paths of the files.
struct Certificates {
    folder: tempfile::TempDir,
    authority: String,
    certificate: String,
    key: String,
}

fn certificates() -> Certificates {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["xds.example".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let folder = tempfile::tempdir().unwrap();
    let key = key.serialize_pem();
    for (name, text) in [
        ("ca", &authority_pem),
        ("cert", &certificate),
        ("key", &key),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    Certificates {
        folder,
        authority: authority_pem,
        certificate,
        key,
    }
}

#[tokio::test]
async fn both_sides_show_certificates() {
    let certificates = certificates();
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(
            &certificates.certificate,
            &certificates.key,
        ))
        .client_ca_root(Certificate::from_pem(&certificates.authority));
    let mut server = ControlPlane::start("127.0.0.1:0", Some(tls));
    let path = |name: &str| certificates.folder.path().join(name).display().to_string();
    let (ca, cert, key) = (path("ca"), path("cert"), path("key"));
    let verified = [
        "--xds-tls",
        "--xds-ca",
        &ca,
        "--xds-server-name",
        "xds.example",
    ];
    let unknown = options(server.address, &verified);
    let mut unknown = EnvoySource::xds(&unknown, false).unwrap();
    let problem = unknown.next().await.unwrap_err().to_string();
    assert!(problem.contains(&server.address.to_string()), "{problem}");

    let known = [&verified[..], &["--xds-cert", &cert, "--xds-key", &key]].concat();
    let mut known = EnvoySource::xds(&options(server.address, &known), false).unwrap();
    let following = tokio::spawn(async move { known.next().await.unwrap().limits() });
    let stream = server.stream().await;
    stream
        .send(response("1", vec![resource("a", vec![limit("k", 5)])]))
        .await
        .unwrap();
    assert_eq!(following.await.unwrap(), 1);
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn handshake_that_does_not_end_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let certificates = certificates();
    let ca = certificates.folder.path().join("ca").display().to_string();
    let options = options(
        listener.local_addr().unwrap(),
        &["--xds-tls", "--xds-ca", &ca],
    );
    let mut source = EnvoySource::xds(&options, false).unwrap();
    let reported = tokio::time::timeout(Duration::from_secs(60), source.next()).await;
    let problems = reported.unwrap().unwrap_err().to_string();
    assert!(problems.contains("is the xDS server up?"), "{problems}");
}

#[test]
fn unusable_options_name_value_and_fix() {
    let address = SocketAddr::from(([127, 0, 0, 1], 9));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (empty, wrong) = (
        file("empty", ""),
        file("wrong", "-----BEGIN CERTIFICATE-----\n"),
    );
    for (flags, problem) in [
        (
            &["--xds-tls"][..],
            "there is no certificate authority for TLS: set CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
        ),
        (
            &["--xds-tls", "--xds-ca", "nowhere.pem"],
            "nowhere.pem: No such file or directory (os error 2): check the path",
        ),
        (&["--xds-tls", "--xds-ca", &wrong], "check the certificates"),
        (
            &[
                "--xds-tls",
                "--xds-ca",
                &empty,
                "--xds-cert",
                &empty,
                "--xds-key",
                &empty,
            ],
            "check the certificates",
        ),
    ] {
        let error = EnvoySource::xds(&options(address, flags), false).unwrap_err();
        assert!(error.to_string().contains(problem), "{flags:?}: {error}");
    }
    let mut options = options(address, &[]);
    options.server = "a host".into();
    let error = EnvoySource::xds(&options, false).unwrap_err().to_string();
    assert!(
        error.starts_with("a host: ") && error.ends_with("write a host and a port"),
        "{error}"
    );
    let unpaired = Flags::try_parse_from(["test", "--xds-cert", "a.pem"]);
    assert!(unpaired.is_err_and(|error| error.to_string().contains("--xds-key")));
}

#[test]
fn resource_has_the_meaning_of_a_file() {
    let mut tree = limit("rule-0-match-0", 0);
    tree.value = "rule-0-match-0".into();
    tree.rate_limit = None;
    let mut open = limit("open", 0);
    open.rate_limit = Some(RateLimitPolicy {
        unlimited: true,
        name: "open".into(),
        replaces: vec![RateLimitReplace {
            name: "narrow".into(),
        }],
        ..RateLimitPolicy::default()
    });
    let mut shadow = limit("shadow", 1);
    shadow.shadow_mode = true;
    let mut quota = limit("quota", 1);
    quota.quota_mode = true;
    let mut narrow = limit("address", 3);
    narrow.rate_limit.as_mut().unwrap().name = "narrow".into();
    let mut pattern = limit("path", 2);
    pattern.value = "/a*".into();
    tree.descriptors = vec![narrow, open, shadow, quota, pattern, limit("none", 0)];
    let world = World::new("gateway", decode(&[resource("gateway", vec![tree])]));
    let ask = |asked: &str| world.shown(&[&format!("rule-0-match-0=rule-0-match-0 {asked}")]);
    assert_eq!(ask(""), ["OK", "OK"]);
    assert_eq!(ask("address=192.0.2.1"), ["OK", "OK 2 2400s"]);
    assert_eq!(ask("address="), ["OK", "OK 2 2400s"]);
    assert_eq!(ask("open=x"), ["OK", "OK 4294967295"]);
    assert_eq!(ask("shadow=x hits:2"), ["OK", "OK 1 2400s"]);
    assert_eq!(ask("quota=x hits:2"), ["OVER", "OVER 1 2400s"]);
    assert_eq!(ask("path=/a/b"), ["OK", "OK 1 2400s"]);
    assert_eq!(ask("path=/b"), ["OK", "OK"]);
    assert_eq!(ask("none=x"), ["OVER", "OVER 0"]);
    let rule = "rule-0-match-0=rule-0-match-0";
    let both = [
        format!("{rule} open=x"),
        format!("{rule} address=192.0.2.1 hits:9"),
    ];
    assert_eq!(
        world.shown(&both.each_ref().map(String::as_str)),
        ["OK", "OK 4294967295", "OK"]
    );
}

#[test]
fn metadata_of_a_resource_is_kept() {
    let mut with_metadata = limit("k", 5);
    let fields = [
        ("owner".to_owned(), "web".into()),
        ("seats".to_owned(), 2.5.into()),
    ];
    with_metadata.metadata = Some(Struct {
        fields: fields.into(),
    });
    let config = decode(&[resource("a", vec![with_metadata.clone()])]);
    let mut options = tower_quota_server::envoy::EnvoyOptions::default();
    options.dynamic_metadata = true;
    let answer = World::with_options("a", config, options).ask(&["k=x"]);
    let shown = &answer.dynamic_metadata.unwrap().fields["metadata"];
    assert_eq!(*shown, with_metadata.metadata.unwrap().fields.into());
}

#[test]
fn problems_of_resources_name_the_descriptor() {
    let mut unknown = limit("k", 5);
    unknown.value = "v".into();
    unknown.rate_limit.as_mut().unwrap().unit = 0;
    let mut outer = limit("o", 5);
    outer.descriptors = vec![unknown.clone()];
    let shown = problems(&[resource("a", vec![outer])]);
    assert!(
        shown.starts_with(
            "listener of a: in \"a.o.k_v\", \"UNKNOWN\" is not a unit: write one of second,"
        ),
        "{shown}"
    );
    unknown.rate_limit.as_mut().unwrap().unit = 42;
    assert!(problems(&[resource("a", vec![unknown])]).contains("is not a unit"));
    assert!(problems(&[resource("", vec![])]).contains("the file has no domain"));
    let same = vec![limit("k", 5), limit("k", 6)];
    assert!(problems(&[resource("a", same)]).contains("the descriptor \"a.k\" is given twice"));
    let mut other = resource("a", vec![]);
    other.type_url = "type.googleapis.com/google.protobuf.Empty".into();
    assert!(
        problems(&[other])
            .contains("google.protobuf.Empty\" is unknown: send type.googleapis.com/ratelimit")
    );
    let mut cut = resource("a", vec![limit("k", 5)]);
    cut.value.pop();
    assert!(
        problems(&[cut])
            .contains("a resource: the resource is no RateLimitConfig, buffer underflow: send")
    );
}

#[test]
fn domain_in_two_resources_may_be_merged() {
    let resources = [
        resource("a", vec![limit("k", 5)]),
        resource("a", vec![limit("l", 5)]),
    ];
    assert!(problems(&resources).contains("the domain \"a\" is also in listener of a"));
    let merged = EnvoyConfig::decode(&resources, true).unwrap();
    assert_eq!((merged.domains(), merged.limits()), (1, 2));
}

#[test]
fn deep_resources_are_refused() {
    let mut deep = limit("k", 5);
    for _ in 0..200 {
        deep = RateLimitDescriptor {
            key: "k".into(),
            descriptors: vec![deep],
            ..RateLimitDescriptor::default()
        };
    }
    assert!(problems(&[resource("a", vec![deep])]).contains("recursion limit reached"));
}

#[test]
fn long_names_are_shortened_in_problems() {
    let long = "k".repeat(1 << 20);
    let same = vec![limit(&long, 5), limit(&long, 6)];
    let shown = problems(&[resource(&long, same)]);
    assert!(shown.len() < 2_000, "{}", shown.len());
}
