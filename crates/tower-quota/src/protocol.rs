//! The protocol that a response speaks: HTTP, or gRPC on top of it.

use http::header::{CONTENT_TYPE, TE};
use http::{Extensions, Method, Version};

use crate::head::RequestHead;

/// Which refusals are gRPC responses: see [`RateLimitLayer::protocol`](crate::RateLimitLayer::protocol).
///
/// A gRPC refusal has the HTTP status 200, which caches, monitors and browsers take for a success. So a content type,
/// which any client may send, does not suffice unless the layer says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// Answers gRPC calls in gRPC if a tonic server received them, which takes the feature `tonic`. All else is HTTP.
    ///
    /// Such a server leaves the connection's TCP or Unix socket addresses in the extensions of its requests. Choose
    /// [`Both`](Self::Both) where tonic's routes are served by axum, or over connections of another kind.
    #[default]
    Auto,
    /// Answers everything in HTTP.
    Http,
    /// Answers everything in gRPC.
    Grpc,
    /// Answers in gRPC what looks like a gRPC call: `POST` with a content type of gRPC-Web, or with one of gRPC over
    /// HTTP/2 or `te: trailers`. For services that speak both.
    Both,
}

/// The content type of a gRPC response. One of the known ones, so that nothing a client sent is echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrpcContentType(pub(crate) &'static str);

/// The beginning of the content types of gRPC-Web, and of no others.
const WEB: &str = "application/grpc-web";

/// The content types of gRPC and gRPC-Web, longest first where one begins another.
const CONTENT_TYPES: [&str; 7] = [
    "application/grpc-web-text+proto",
    "application/grpc-web-text",
    "application/grpc-web+proto",
    WEB,
    "application/grpc+proto",
    "application/grpc+json",
    "application/grpc",
];

impl Protocol {
    /// Returns the content type of the gRPC response to a request; `None` if the response is plain HTTP.
    pub(crate) fn grpc_content_type(self, head: RequestHead<'_>) -> Option<GrpcContentType> {
        match self {
            Self::Http => None,
            Self::Auto if !is_from_tonic(head.extensions()) => None,
            Self::Auto | Self::Both => GrpcContentType::of(head),
            Self::Grpc => Some(GrpcContentType::sent(head).unwrap_or(GrpcContentType("application/grpc"))),
        }
    }
}

impl GrpcContentType {
    /// Returns the content type of a request that can be a gRPC call.
    ///
    /// Calls are posted, over HTTP/2 or later unless they are gRPC-Web, or were before an outer layer translated them:
    /// tonic-web then says `te: trailers`.
    pub(crate) fn of(head: RequestHead<'_>) -> Option<Self> {
        let known = Self::sent(head).filter(|_| head.method() == Method::POST)?;
        let is_translated = || head.headers().get(TE).is_some_and(|te| te == "trailers");
        (head.version() >= Version::HTTP_2 || known.0.starts_with(WEB) || is_translated()).then_some(known)
    }

    /// Returns the known content type that a request has.
    fn sent(head: RequestHead<'_>) -> Option<Self> {
        let sent = head.headers().get(CONTENT_TYPE)?.as_bytes();
        let begins = |known: &str| {
            sent.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known.as_bytes()))
                && matches!(sent.get(known.len()), None | Some(b'+' | b';' | b' '))
        };
        CONTENT_TYPES.into_iter().find(|known| begins(known)).map(Self)
    }
}

#[cfg(feature = "tonic")]
fn is_from_tonic(extensions: &Extensions) -> bool {
    // Behind TLS tonic attaches the addresses of the connection below as well.
    let is_from_tcp = || extensions.get::<tonic::transport::server::TcpConnectInfo>().is_some();
    #[cfg(unix)]
    let is_from_unix = || extensions.get::<tonic::transport::server::UdsConnectInfo>().is_some();
    #[cfg(not(unix))]
    let is_from_unix = || false;
    is_from_tcp() || is_from_unix()
}

#[cfg(not(feature = "tonic"))]
const fn is_from_tonic(_: &Extensions) -> bool {
    false
}
