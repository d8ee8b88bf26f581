//! Three stacks that services are built with, with the limit outside, between and inside of the other layers.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod close_connection;
mod grpc;
mod shared;
mod tower_services;
mod web;
mod websockets;
