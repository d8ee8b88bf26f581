//! gRPC calls.

use super::Condition;
use crate::head::RequestHead;
use crate::protocol::GrpcContentType;

/// Holds of the calls that are answered in gRPC's own way when they are refused: `POST` with a content type of gRPC over
/// HTTP/2 or later, or with one of gRPC-Web.
#[must_use]
pub fn grpc() -> Box<dyn Condition> {
    Box::new(|head: &RequestHead<'_>| GrpcContentType::of(*head).is_some())
}
