//! Rebuilds the request of a client from the fields of a gateway.

use core::net::IpAddr;

use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use tower_quota::RequestHead;
use tower_quota::key::{ClientIp, Proxies, Source, client_ip};
use tower_quota::when::try_network_range;

use crate::http::{HttpOptions, Problem, TOKEN, only, with_plain_path};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const AUTHORITY: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The fields of gateways, and the proxies that may send them.
pub(super) struct Forwarded {
    trusted: Vec<(IpAddr, IpAddr)>,
    client_ip: ClientIp,
}

impl Forwarded {
    pub(super) fn new(options: &HttpOptions) -> Self {
        let networks = &options.trusted_proxies;
        // The texts are valid networks, so the default is never used.
        let proxies = Proxies::try_networks(networks.iter().map(|network| network.as_str()))
            .unwrap_or_else(|_| Proxies::networks([""; 0]));
        Self {
            trusted: networks
                .iter()
                .filter_map(|network| try_network_range(network.as_str()).ok())
                .collect(),
            client_ip: client_ip().behind(proxies, Source::XForwardedFor),
        }
    }

    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        let mut trusted = self.trusted.iter();
        trusted.any(|(first, last)| (*first..=*last).contains(&peer))
    }

    /// Returns the request of the client, with the client as the peer.
    pub(super) fn rebuild(&self, gateway: IpAddr, mut head: Parts) -> Result<Request<()>, Problem> {
        let method = field(&head.headers, &METHOD)?;
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| unreadable("method"))?;
        let uri = target(field(&head.headers, &URI)?)?;
        let host = field(&head.headers, &AUTHORITY)?.clone();
        if !head.headers.contains_key(FOR) {
            return Err(missing(&FOR));
        }
        // Keep extensions of the connection away from the keys of documents.
        head.extensions = http::Extensions::new();
        head.extensions.insert(gateway);
        let client = self.client_ip.address(&RequestHead::from_parts(&head));
        head.extensions.insert(client.unwrap_or(gateway));
        for name in [FOR, METHOD, URI, AUTHORITY, TOKEN] {
            head.headers.remove(name);
        }
        head.headers.insert(HOST, host);
        (head.method, head.uri) = (method, uri);
        Ok(with_plain_path(Request::from_parts(head, ())))
    }
}

/// Returns the path and the query. A client may have sent a URL with a host of its choice.
fn target(value: &HeaderValue) -> Result<Uri, Problem> {
    let uri = Uri::try_from(value.as_bytes()).ok();
    let path = uri.and_then(|uri| uri.into_parts().path_and_query);
    path.map(Uri::from).ok_or_else(|| unreadable("target"))
}

/// Returns the value of a field that occurs once. A client may have sent another one.
fn field<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<&'h HeaderValue, Problem> {
    only(headers, name).ok_or_else(|| match headers.contains_key(name) {
        false => missing(name),
        true => Problem::bad_request(format_args!(
            "the gateway sends {name} twice: let it replace the field of the client"
        )),
    })
}

fn missing(name: &HeaderName) -> Problem {
    Problem::bad_request(format_args!(
        "the gateway sends no {name}: let it set the field for each request"
    ))
}

fn unreadable(part: &str) -> Problem {
    Problem::bad_request(format_args!(
        "the {part} of the forwarded request cannot be read: send it as the client sent it"
    ))
}
