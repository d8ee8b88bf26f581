//! Keys from gRPC services, methods and metadata.

use base64::Engine;
use http::header::{HeaderName, InvalidHeaderName};

use super::authorization::LENIENT;
use super::header::lines;
use super::place::Place;
use super::value::{SentValue, ValueKey};
use crate::head::RequestHead;
use crate::valid::valid_header;

/// Counts by the gRPC service that is called, such as `helloworld.Greeter`.
///
/// The extractor reads the path, as gRPC servers do, whatever the content type. If your router serves other paths with two
/// segments, add [`when::grpc_service`](crate::when::grpc_service). Each made-up service gets a new counter: combine the
/// key with the [client](super::client_ip) by [`all`](super::all()), or put the layer inside the routes.
pub fn grpc_service() -> ValueKey {
    ValueKey::of(Place::GrpcService)
}

/// Counts by the gRPC method that is called, such as `helloworld.Greeter/SayHello`: see [`grpc_service`].
#[doc(alias = "rpc")]
pub fn grpc_method() -> ValueKey {
    ValueKey::of(Place::GrpcMethod)
}

/// Returns the service and the method that a path calls, with and without the service.
pub(super) fn called<'r>(head: &RequestHead<'r>) -> Option<(&'r str, &'r str)> {
    let call = head.uri().path().strip_prefix('/')?;
    let (service, method) = call.split_once('/')?;
    let call = if method.is_empty() { method } else { call };
    (!service.is_empty()).then_some((service, call))
}

/// Counts by a value of the request's gRPC metadata, such as a tenant.
///
/// If the name ends in `-bin`, the extractor decodes the values from base64, padded or not, also several to a line. All else
/// is as in [`header`](super::header()).
///
/// # Panics
/// If `name` cannot be the name of metadata; see [`try_metadata`].
#[track_caller]
pub fn metadata(name: &str) -> ValueKey {
    ValueKey::of(Place::Metadata(valid_header(name)))
}

/// Works like [`metadata`], but returns an error for an invalid name.
///
/// # Errors
/// [`InvalidHeaderName`] if `name` is empty or not a token (RFC 9110, section 5.1).
pub fn try_metadata(name: &str) -> Result<ValueKey, InvalidHeaderName> {
    Ok(ValueKey::of(Place::Metadata(HeaderName::from_bytes(
        name.as_bytes(),
    )?)))
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
