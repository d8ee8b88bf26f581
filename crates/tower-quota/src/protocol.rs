use http::header::{CONTENT_TYPE, TE};
use http::{Extensions, Method, Version};

use crate::head::RequestHead;

/// Chooses between HTTP and gRPC refusals.
///
/// gRPC refusals have the HTTP status 200, a success for caches and browsers. So by default the client's content type
/// alone does not select gRPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// Refuses in gRPC if a tonic server received the gRPC call, otherwise in HTTP.
    ///
    /// Needs the feature `tonic`, and TCP or Unix sockets. If axum serves tonic's routes, choose [`Both`](Self::Both).
    #[default]
    Auto,
    /// Always refuses in HTTP.
    Http,
    /// Always refuses in gRPC.
    Grpc,
    /// Refuses in gRPC if the request looks like a gRPC call.
    ///
    /// Matches `POST` with a gRPC-Web type, or a gRPC type and HTTP/2 or `te: trailers`.
    Both,
}

/// From a fixed list, so that no client text is echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrpcContentType(pub(crate) &'static str);

const WEB: &str = "application/grpc-web";

/// Longer types come before their prefixes.
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
    /// tonic-web adds `te: trailers` when translating gRPC-Web.
    pub(crate) fn of(head: RequestHead<'_>) -> Option<Self> {
        let known = Self::sent(head).filter(|_| head.method() == Method::POST)?;
        let is_translated = || head.headers().get(TE).is_some_and(|te| te == "trailers");
        (head.version() >= Version::HTTP_2 || known.0.starts_with(WEB) || is_translated())
            .then_some(known)
    }

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
    // Over TLS, tonic also attaches TCP addresses.
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
