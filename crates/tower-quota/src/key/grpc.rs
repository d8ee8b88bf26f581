//! Keys from gRPC services, methods and metadata.

use base64::Engine;
use http::header::{HeaderName, InvalidHeaderName};
use tower_quota_core::Name;

use super::authorization::LENIENT;
use super::header::lines;
use super::place::Place;
use super::value::{SentValue, ValueKey};
use crate::head::RequestHead;
use crate::valid::valid_header;

/// Counts by the gRPC service that is called, such as `helloworld.Greeter`.
///
/// The extractor reads the path `/helloworld.Greeter/SayHello`, as gRPC servers do, and ignores the content type. The key
/// is missing if the path has no second segment. If your router serves other paths with two segments, add
/// [`when::grpc_service`](crate::when::grpc_service).
///
/// Each made-up service gets a new counter: combine the key with the [client](super::client_ip) by
/// [`all`](super::all()), or put the layer inside the routes.
pub const fn grpc_service() -> ValueKey {
    ValueKey {
        scope: Name::new("grpc service"),
        place: Place::GrpcService,
    }
}

/// Counts by the gRPC method that is called, such as `helloworld.Greeter/SayHello`.
///
/// Methods of one name in two services are two keys. See [`grpc_service`].
#[doc(alias = "rpc")]
pub const fn grpc_method() -> ValueKey {
    ValueKey {
        scope: Name::new("grpc method"),
        place: Place::GrpcMethod,
    }
}

/// Returns the service that a path calls.
pub(super) fn called_service<'r>(head: &RequestHead<'r>) -> Option<&'r str> {
    let (service, _) = head.uri().path().strip_prefix('/')?.split_once('/')?;
    (!service.is_empty()).then_some(service)
}

/// Returns the service and the method that a path calls.
pub(super) fn called_method<'r>(head: &RequestHead<'r>) -> Option<&'r str> {
    let call = head.uri().path().strip_prefix('/')?;
    let (service, method) = call.split_once('/')?;
    (!service.is_empty() && !method.is_empty()).then_some(call)
}

/// Counts by a value of the request's gRPC metadata, such as a tenant.
///
/// The name is not case-sensitive. If it ends in `-bin`, the values are bytes in base64, padded or not, several to a line.
/// The extractor decodes them, and the key is missing if it cannot. All else is as in [`header`](super::header()).
///
/// # Panics
/// If `name` cannot be the name of metadata; see [`try_metadata`].
#[track_caller]
pub fn metadata(name: &str) -> ValueKey {
    named(valid_header(name))
}

/// Works like [`metadata`], but returns an error for an invalid name.
///
/// # Errors
/// [`InvalidHeaderName`] if `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_metadata(name: &str) -> Result<ValueKey, InvalidHeaderName> {
    HeaderName::from_bytes(name.as_bytes()).map(named)
}

fn named(name: HeaderName) -> ValueKey {
    ValueKey {
        scope: Name::from(format!("metadata {name}")),
        place: Place::Metadata(name),
    }
}

/// Calls `visit` with the values of the metadata of this name.
pub(super) fn metadata_values<'r>(
    head: &RequestHead<'r>,
    name: &HeaderName,
    visit: &mut dyn FnMut(SentValue<'r>),
) {
    let is_binary = name.as_str().ends_with("-bin");
    for line in lines(head, name) {
        if is_binary {
            for value in line.split(|byte| *byte == b',') {
                let decoded = LENIENT.decode(value.trim_ascii());
                visit(decoded.ok().map(Into::into));
            }
        } else {
            visit(Some(line.into()));
        }
    }
}
