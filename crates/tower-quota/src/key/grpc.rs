//! Counting by gRPC service or method.

use tower_quota_core::{Key, Name};

use super::KeyExtractor;
use crate::head::RequestHead;
use crate::protocol::GrpcContentType;

const SERVICE: Name = Name::new("grpc service");
const METHOD: Name = Name::new("grpc method");

/// Counts by the service that a gRPC request calls, such as `helloworld.Greeter`. It is missing when the request is not
/// gRPC nor gRPC-Web. Outside a server's routes made-up services get a counter each: call it together with
/// [the client](super::client_ip), or behind the routes.
#[must_use]
pub const fn grpc_service() -> GrpcService {
    GrpcService(())
}

/// The extractor of [`grpc_service`].
#[derive(Clone, Copy, Debug)]
pub struct GrpcService(());

impl KeyExtractor for GrpcService {
    fn scope(&self) -> Name {
        SERVICE
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let (service, _) = called(head)?.split_once('/')?;
        (!service.is_empty()).then(|| Key::new(SERVICE, service.as_bytes()))
    }
}

/// Counts by the method that a gRPC request calls, such as `helloworld.Greeter/SayHello`: methods of one name in two
/// services are two. It is missing when the request is not gRPC nor gRPC-Web. For made-up methods see [`grpc_service`].
#[must_use]
pub const fn grpc_method() -> GrpcMethod {
    GrpcMethod(())
}

/// The extractor of [`grpc_method`].
#[derive(Clone, Copy, Debug)]
pub struct GrpcMethod(());

impl KeyExtractor for GrpcMethod {
    fn scope(&self) -> Name {
        METHOD
    }

    fn extract<'r>(&self, head: &RequestHead<'r>) -> Option<Key<'r>> {
        let called = called(head)?;
        let (service, method) = called.split_once('/')?;
        (!service.is_empty() && !method.is_empty()).then(|| Key::new(METHOD, called.as_bytes()))
    }
}

/// `service/method`: the path of a gRPC request.
fn called<'r>(head: &RequestHead<'r>) -> Option<&'r str> {
    GrpcContentType::of(*head)?;
    head.uri().path().strip_prefix('/')
}
