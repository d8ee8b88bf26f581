use base64::Engine;
use http::header::{HeaderName, InvalidHeaderName};

use super::authorization::LENIENT;
use super::header::lines;
use super::place::Place;
use super::value::{SentValue, ValueKey};
use crate::head::RequestHead;
use crate::valid::valid_header;

/// Counts by the called gRPC service, like `helloworld.Greeter`.
///
/// Like gRPC servers, the extractor reads the path and ignores the content type. If your router serves other
/// two-segment paths, add [`when::grpc_service`](crate::when::grpc_service). Put the layer inside the routes, or add
/// the [client](super::client_ip) by [`all`](super::all()), because made-up services get new counters.
pub fn grpc_service() -> ValueKey {
    ValueKey::of(Place::GrpcService)
}

/// Counts by the called gRPC method, like `helloworld.Greeter/SayHello`. See [`grpc_service`].
#[doc(alias = "rpc")]
pub fn grpc_method() -> ValueKey {
    ValueKey::of(Place::GrpcMethod)
}

/// Returns the service, and the method with the service.
pub(super) fn called<'r>(head: &RequestHead<'r>) -> Option<(&'r str, &'r str)> {
    let call = head.uri().path().strip_prefix('/')?;
    let (service, method) = call.split_once('/')?;
    let call = if method.is_empty() { method } else { call };
    (!service.is_empty()).then_some((service, call))
}

/// Counts by a gRPC metadata value, for example a tenant. See [`header`](super::header()).
///
/// For names ending in `-bin`, the extractor splits lines at commas and decodes base64, padded or not.
///
/// # Panics
/// If `name` is not a valid name.
#[track_caller]
pub fn metadata(name: &str) -> ValueKey {
    ValueKey::of(Place::Metadata(valid_header(name)))
}

/// The fallible [`metadata`].
///
/// # Errors
/// [`InvalidHeaderName`] if `name` is not a token (RFC 9110).
pub fn try_metadata(name: &str) -> Result<ValueKey, InvalidHeaderName> {
    Ok(ValueKey::of(Place::Metadata(HeaderName::from_bytes(
        name.as_bytes(),
    )?)))
}

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
