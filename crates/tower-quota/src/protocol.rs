//! The protocol of a refusal: HTTP, or gRPC on top of it.

use http::header::{CONTENT_TYPE, TE};
use http::{Extensions, Method, Version};

use crate::head::RequestHead;

/// The choice of which refusals are gRPC responses.
///
/// It is set by [`RateLimitLayer::protocol`](crate::RateLimitLayer::protocol). A gRPC refusal has the HTTP status 200,
/// which caches, monitors and browsers treat as a success. So by default a content type, which any client may send, is
/// not enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// Answers gRPC calls in gRPC if a tonic server received them, and all other requests in HTTP.
    ///
    /// It needs the feature `tonic`. Such a server puts the connection's TCP or Unix socket addresses into the
    /// extensions of its requests. Choose [`Both`](Self::Both) if axum serves tonic's routes, or over other kinds of
    /// connections.
    #[default]
    Auto,
    /// Answers everything in HTTP.
    Http,
    /// Answers everything in gRPC.
    Grpc,
    /// Answers in gRPC if the request looks like a gRPC call, for services that serve both protocols.
    ///
    /// That is `POST` with a content type of gRPC-Web, or with one of gRPC and HTTP/2 or `te: trailers`.
    Both,
}

/// The content type of a gRPC response. It is a known one, so that no text of a client is echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrpcContentType(pub(crate) &'static str);

/// The prefix of the content types of gRPC-Web.
const WEB: &str = "application/grpc-web";

/// The content types of gRPC and gRPC-Web. A longer one comes before its prefix.
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
    pub(crate) fn may_be_grpc(self) -> bool {
        self != Self::Http && (self != Self::Auto || cfg!(feature = "tonic"))
    }

    /// Returns the content type of the gRPC response to a request; `None` if the response is plain HTTP.
    pub(crate) fn grpc_content_type(self, head: RequestHead<'_>) -> Option<GrpcContentType> {
        match self {
            Self::Http => None,
            Self::Auto if !is_from_tonic(head.extensions()) => None,
            Self::Auto | Self::Both => GrpcContentType::of(head),
            Self::Grpc => {
                Some(GrpcContentType::sent(head).unwrap_or(GrpcContentType("application/grpc")))
            }
        }
    }
}

impl GrpcContentType {
    /// Returns the content type of a request that can be a gRPC call.
    ///
    /// Calls use `POST` over HTTP/2 or later, except gRPC-Web and calls that an outer layer translated from gRPC-Web:
    /// tonic-web then adds `te: trailers`.
    pub(crate) fn of(head: RequestHead<'_>) -> Option<Self> {
        let known = Self::sent(head).filter(|_| head.method() == Method::POST)?;
        let is_translated = || head.headers().get(TE).is_some_and(|te| te == "trailers");
        (head.version() >= Version::HTTP_2 || known.0.starts_with(WEB) || is_translated())
            .then_some(known)
    }

    /// Returns the content type of a request, if it is a known one.
    fn sent(head: RequestHead<'_>) -> Option<Self> {
        let sent = head.headers().get(CONTENT_TYPE)?.as_bytes();
        let begins = |known: &str| {
            sent.get(..known.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(known.as_bytes()))
                && matches!(sent.get(known.len()), None | Some(b'+' | b';' | b' '))
        };
        CONTENT_TYPES
            .into_iter()
            .find(|known| begins(known))
            .map(Self)
    }
}

#[cfg(feature = "tonic")]
fn is_from_tonic(extensions: &Extensions) -> bool {
    // With TLS tonic also attaches the addresses of the TCP connection.
    let is_from_tcp = || {
        extensions
            .get::<tonic::transport::server::TcpConnectInfo>()
            .is_some()
    };
    #[cfg(unix)]
    let is_from_unix = || {
        extensions
            .get::<tonic::transport::server::UdsConnectInfo>()
            .is_some()
    };
    #[cfg(not(unix))]
    let is_from_unix = || false;
    is_from_tcp() || is_from_unix()
}

#[cfg(not(feature = "tonic"))]
const fn is_from_tonic(_: &Extensions) -> bool {
    false
}
