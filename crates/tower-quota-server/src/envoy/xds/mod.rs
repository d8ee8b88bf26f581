//! Limits by xDS, the discovery protocol of Envoy, as Envoy Gateway serves them.
//!
//! The client subscribes to all resources of the type `RateLimitConfig` over an aggregated stream, in the variant in which
//! each response has the state of the world. It accepts a response (ACK) when all limits are good, and otherwise refuses it
//! with the problems (NACK). A new stream asks for everything again, because the versions of a restarted server start again.

mod options;
mod subscription;

pub use self::options::XdsOptions;
pub(super) use self::subscription::Subscription;
