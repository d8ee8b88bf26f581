mod grpc_type;

use http::header::TE;
use http::{Extensions, Method, Version};

pub(crate) use self::grpc_type::{GRPC_STATUS, GrpcContentType};
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

impl Protocol {
    pub(crate) fn may_be_grpc(self) -> bool {
        self != Self::Http && (self != Self::Auto || cfg!(feature = "tonic"))
    }

    pub(crate) fn grpc_content_type(self, head: RequestHead<'_>) -> Option<GrpcContentType> {
        match self {
            Self::Http => None,
            Self::Auto if !is_from_tonic(head.extensions()) => None,
            Self::Auto | Self::Both => called(head),
            Self::Grpc => Some(
                GrpcContentType::of(head.headers()).unwrap_or(GrpcContentType("application/grpc")),
            ),
        }
    }
}

/// Returns the type of a gRPC call. tonic-web adds `te: trailers` when it translates gRPC-Web.
pub(crate) fn called(head: RequestHead<'_>) -> Option<GrpcContentType> {
    let known = GrpcContentType::of(head.headers()).filter(|_| head.method() == Method::POST)?;
    let is_translated = || head.headers().get(TE).is_some_and(|te| te == "trailers");
    (head.version() >= Version::HTTP_2 || known.is_web() || is_translated()).then_some(known)
}

#[cfg(feature = "tonic")]
fn is_from_tonic(extensions: &Extensions) -> bool {
    // tonic attaches TCP addresses over TLS too, so this covers both.
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
