//! Rebuilds the request of a client from the fields of a gateway.

use core::net::IpAddr;

use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use tower_quota::RequestHead;
use tower_quota::key::{ClientIp, Proxies, Source, client_ip};
use tower_quota_rules::Networks;

use crate::http::{HttpOptions, Problem, TOKEN, with_plain_path};

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const AUTHORITY: HeaderName = HeaderName::from_static("x-forwarded-host");
const ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
const ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");
const ORIGINAL_URL: HeaderName = HeaderName::from_static("x-original-url");

/// The fields of gateways, and the proxies that may send them.
pub(super) struct Forwarded {
    trusted: Networks<()>,
    client_ip: ClientIp,
    has_original_fields: bool,
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
                .map(|network| (network.to_net(), ()))
                .collect(),
            client_ip: client_ip().behind(proxies, Source::XForwardedFor),
            has_original_fields: options.original_fields,
        }
    }

    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted.find(peer).next().is_some()
    }

    /// Returns the request of the client, with the client as the peer.
    pub(super) fn rebuild(&self, gateway: IpAddr, mut head: Parts) -> Result<Request<()>, Problem> {
        let method = match self.has_original_fields {
            true => only(&head.headers, &ORIGINAL_METHOD)?,
            false => only(&head.headers, &METHOD)?,
        };
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| unreadable("method"))?;
        let (uri, host) = match self.has_original_fields {
            true => original_target(&head.headers)?,
            false => {
                let host = only(&head.headers, &AUTHORITY)?.clone();
                (target(only(&head.headers, &URI)?)?.0, Some(host))
            }
        };
        if !head.headers.contains_key(FOR) {
            return Err(missing(&FOR));
        }
        // Keep extensions of the connection away from the keys of documents.
        head.extensions = http::Extensions::new();
        head.extensions.insert(gateway);
        let client = self.client_ip.address(&RequestHead::from_parts(&head));
        head.extensions.insert(client.unwrap_or(gateway));
        for name in [
            FOR,
            METHOD,
            URI,
            AUTHORITY,
            ORIGINAL_METHOD,
            ORIGINAL_URI,
            ORIGINAL_URL,
            TOKEN,
        ] {
            head.headers.remove(name);
        }
        if let Some(host) = host {
            head.headers.insert(HOST, host);
        }
        (head.method, head.uri) = (method, uri);
        Ok(with_plain_path(Request::from_parts(head, ())))
    }
}

/// Returns the target of `X-Original-URI` or `X-Original-URL`, with its host if it is a URL.
fn original_target(headers: &HeaderMap) -> Result<(Uri, Option<HeaderValue>), Problem> {
    let name = match headers.contains_key(&ORIGINAL_URL) {
        true if headers.contains_key(&ORIGINAL_URI) => {
            let detail = "the gateway sends X-Original-URI and X-Original-URL: let it set one, and clear the other";
            return Err(Problem::bad_request(detail));
        }
        true => &ORIGINAL_URL,
        false => &ORIGINAL_URI,
    };
    // A path comes with the host that the gateway asks for.
    target(only(headers, name)?)
}

/// Returns a target without its host, and the host if the target is a URL.
fn target(value: &HeaderValue) -> Result<(Uri, Option<HeaderValue>), Problem> {
    let uri = Uri::try_from(value.as_bytes()).map_err(|_| unreadable("target"))?;
    let host = uri
        .authority()
        .map(|host| HeaderValue::from_str(host.as_str()));
    let host = host.transpose().map_err(|_| unreadable("host"))?;
    // A host alone, as of `CONNECT`, has no path.
    let path = uri.into_parts().path_and_query;
    let path = path.ok_or_else(|| unreadable("target"))?;
    Ok((Uri::from(path), host))
}

/// Returns the value of a field that occurs once. A client may have sent another one.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<&'h HeaderValue, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Err(missing(name));
    };
    match values.next() {
        None => Ok(value),
        Some(_) => Err(Problem::bad_request(format_args!(
            "the gateway sends {name} twice: let it replace the field of the client"
        ))),
    }
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
