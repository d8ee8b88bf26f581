use http::header::HeaderName;
use tower_quota_core::Name;

use super::authorization::{credentials, user};
use super::grpc::{called, metadata_values};
use super::header::{SentValue, cookies, lines};
#[cfg(feature = "axum")]
use super::matched::matched_parameter;
use super::target::{decoded, known, query_values, segment};
use crate::head::RequestHead;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Header(HeaderName),
    Bearer,
    BasicUser,
    Cookie(Name),
    Query(Name),
    #[cfg(feature = "axum")]
    Route,
    #[cfg(feature = "axum")]
    PathParameter(Name),
    PathSegment(usize),
    Path,
    Host,
    Method,
    GrpcService,
    GrpcMethod,
    Metadata(HeaderName),
}

impl Place {
    pub(super) fn each_value<'r>(
        &self,
        head: &RequestHead<'r>,
        visit: &mut dyn FnMut(SentValue<'r>),
    ) {
        match self {
            Self::Header(name) => lines(head, name).for_each(|line| visit(Some(line.into()))),
            Self::Bearer => {
                credentials(head, "Bearer").for_each(|token| visit(token.map(Into::into)));
            }
            Self::BasicUser => {
                credentials(head, "Basic").for_each(|sent| visit(sent.and_then(user)));
            }
            Self::Cookie(name) => cookies(head, *name).for_each(|value| visit(Some(value))),
            Self::Query(name) => query_values(head, *name).for_each(|value| visit(Some(value))),
            #[cfg(feature = "axum")]
            Self::Route => visit(head.route_for_key().map(|route| route.as_bytes().into())),
            #[cfg(feature = "axum")]
            Self::PathParameter(name) => visit(matched_parameter(head, *name).map(decoded)),
            Self::PathSegment(index) => visit(segment(head, *index).map(decoded)),
            Self::Path => visit(Some(decoded(head.path()))),
            Self::Host => head.hosts().for_each(|host| visit(Some(host))),
            Self::Method => visit(Some(known(head.method()).as_bytes().into())),
            Self::GrpcService => visit(called(head).map(|(name, _)| name.as_bytes().into())),
            Self::GrpcMethod => visit(called(head).map(|(_, name)| name.as_bytes().into())),
            Self::Metadata(name) => metadata_values(head, name, visit),
        }
    }
}
