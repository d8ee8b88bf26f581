//! Keys from gRPC services, methods and metadata.

use core::iter::once;

use base64::Engine;
use http::header::{HeaderName, HeaderValue, InvalidHeaderName};
use tower_quota_core::Name;

use super::authorization::LENIENT;
use super::single::{SentValue, key_of, single_value};
use crate::head::RequestHead;
use crate::valid::valid_header;

/// Counts by the gRPC service that is called, such as `helloworld.Greeter`.
///
/// It is read from the path alone, `/helloworld.Greeter/SayHello`, as gRPC servers do; the content type is ignored. The
/// key is missing if the path has no second segment. Other paths with two segments have a key too: if a router serves
/// both, add [`when::grpc_service`](crate::when::grpc_service).
///
/// Each made-up service gets a new counter: combine it with the [client](super::client_ip) by [`all`](super::all()), or
/// put the layer inside the routes.
#[must_use]
pub const fn grpc_service() -> GrpcServiceKey {
    GrpcServiceKey {
        scope: Name::new("grpc service"),
    }
}

/// The extractor of [`grpc_service`].
#[derive(Clone, Copy, Debug)]
pub struct GrpcServiceKey {
    scope: Name,
}

impl GrpcServiceKey {
    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        once(called(head).map(|(service, _)| service.as_bytes().into()))
    }
}

/// Counts by the gRPC method that is called, such as `helloworld.Greeter/SayHello`.
///
/// Methods of the same name in two services are two keys. Otherwise it works like [`grpc_service`].
#[must_use]
#[doc(alias = "rpc")]
pub const fn grpc_method() -> GrpcMethodKey {
    GrpcMethodKey {
        scope: Name::new("grpc method"),
    }
}

/// The extractor of [`grpc_method`].
#[derive(Clone, Copy, Debug)]
pub struct GrpcMethodKey {
    scope: Name,
}

impl GrpcMethodKey {
    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        let method = called(head).filter(|(_, method)| !method.is_empty());
        once(
            method
                .and_then(|_| head.uri().path().strip_prefix('/'))
                .map(|path| path.as_bytes().into()),
        )
    }
}

/// Returns the service and the method that a path calls.
fn called<'r>(head: &RequestHead<'r>) -> Option<(&'r str, &'r str)> {
    head.uri()
        .path()
        .strip_prefix('/')?
        .split_once('/')
        .filter(|(service, _)| !service.is_empty())
}

/// Counts by a value of the request's gRPC metadata, such as a tenant.
///
/// The name is not case-sensitive. Values of names that end in `-bin` are bytes in base64, padded or not, and are
/// decoded; one line may hold several. If they cannot be decoded, the key is missing. Otherwise it works like
/// [`header`](super::header()).
///
/// # Panics
/// When `name` cannot be the name of metadata; see [`try_metadata`].
#[must_use]
#[track_caller]
pub fn metadata(name: &str) -> MetadataKey {
    MetadataKey::new(valid_header(name))
}

/// Works like [`metadata`], but returns an error for an invalid name.
///
/// # Errors
/// [`InvalidHeaderName`] when `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_metadata(name: &str) -> Result<MetadataKey, InvalidHeaderName> {
    HeaderName::from_bytes(name.as_bytes()).map(MetadataKey::new)
}

/// The extractor of [`metadata`].
#[derive(Clone, Debug)]
pub struct MetadataKey {
    scope: Name,
    name: HeaderName,
    is_binary: bool,
}

impl MetadataKey {
    fn new(name: HeaderName) -> Self {
        Self {
            scope: Name::from(format!("metadata {name}")),
            is_binary: name.as_str().ends_with("-bin"),
            name,
        }
    }

    fn values<'r>(&self, head: &RequestHead<'r>) -> impl Iterator<Item = SentValue<'r>> + use<'r> {
        let is_binary = self.is_binary;
        let lines = head
            .headers()
            .get_all(&self.name)
            .iter()
            .map(HeaderValue::as_bytes);
        lines
            .flat_map(move |line| line.split(move |byte| is_binary && *byte == b','))
            .map(move |value| {
                let value = value.trim_ascii();
                if is_binary {
                    Some(LENIENT.decode(value).ok()?.into())
                } else {
                    Some(value.into())
                }
            })
    }
}

single_value!(GrpcServiceKey GrpcMethodKey MetadataKey);

key_of! {
    [] GrpcServiceKey;
    [] GrpcMethodKey;
    [] MetadataKey;
}
