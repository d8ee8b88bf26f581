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
/// Like gRPC servers, the extractor ignores the content type. If your router serves other two-segment paths, add
/// [`when::grpc_service`](crate::when::grpc_service). Clients can make up services, so put the layer inside the routes.
pub fn grpc_service() -> ValueKey {
    ValueKey::of(Place::GrpcService)
}

/// Counts by the called gRPC method, like `helloworld.Greeter/SayHello`.
#[doc(alias = "rpc")]
pub fn grpc_method() -> ValueKey {
    ValueKey::of(Place::GrpcMethod)
}

pub(super) fn called<'r>(head: &RequestHead<'r>) -> Option<(&'r str, &'r str)> {
    let call = head.uri().path().strip_prefix('/')?;
    let (service, method) = call.split_once('/')?;
    let call = if method.is_empty() { method } else { call };
    (!service.is_empty()).then_some((service, call))
}

/// Counts by gRPC metadata, like [`header`](super::header()).
///
/// If `name` ends in `-bin`, values are split at commas and decoded from base64.
///
/// # Panics
/// If `name` is invalid.
#[track_caller]
pub fn metadata(name: &str) -> ValueKey {
    ValueKey::of(Place::Metadata(valid_header(name)))
}

/// The fallible [`metadata`].
///
/// # Errors
/// If `name` is invalid.
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
