//! Tests of responses through the public interface: header fields and refusals, HTTP and gRPC.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod custom_styles;
mod fields;
mod grpc;
mod grpc_details;
mod grpc_sockets;
mod hidden;
mod hostile;
mod inner_refusals;
mod jitter;
mod nested;
mod pace;
mod refusals;
#[path = "../shared/mod.rs"]
mod shared;
mod styles;
