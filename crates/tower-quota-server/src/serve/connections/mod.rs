//! The connections of every port, with bounds.
//!
//! 1. [`port`] accepts connections, up to a maximum number.
//! 2. [`connection`] serves a connection until it has been idle for too long, is too old, or the server ends.
//! 3. [`requests`] bounds the time of each request.
//!
//! [`bounds`] has the numbers.

mod bounds;
mod connection;
mod port;
mod requests;

pub(super) use self::bounds::Protocol;
pub(super) use self::port::BoundPort;
