use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName};

pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// A content type from a fixed list, so that responses echo no client text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrpcContentType(pub(crate) &'static str);

const WEB: &str = "application/grpc-web";

/// The recognised types. Longer types come before their prefixes.
const CONTENT_TYPES: [&str; 7] = [
    "application/grpc-web-text+proto",
    "application/grpc-web-text",
    "application/grpc-web+proto",
    WEB,
    "application/grpc+proto",
    "application/grpc+json",
    "application/grpc",
];

impl GrpcContentType {
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let sent = headers.get(CONTENT_TYPE)?.as_bytes();
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

    pub(crate) fn is_web(self) -> bool {
        self.0.starts_with(WEB)
    }
}
