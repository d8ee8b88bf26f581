//! The connections of every port, with bounds.
//!
//! 1. [`port`] accepts connections, and gives each one a place.
//! 2. [`places`] bounds the connections of a port. When all places are taken, the oldest connection without a request since
//!    the last such moment ends, so slow clients cannot keep others out.
//! 3. [`connection`] serves a connection until it has been idle for too long, is too old, or the server ends.
//! 4. [`requests`] bounds the time of each request.
//!
//! [`bounds`] has the numbers.

mod bounds;
mod connection;
mod places;
mod port;
mod requests;

pub(super) use self::bounds::Protocol;
pub(super) use self::port::BoundPort;
