//! The layer inside and outside of the layers that services are built with, asked over real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod axum_apps;
mod axum_streams;
mod close_connection;
mod each_layer;
mod grpc;
mod handler;
mod inner_layers;
mod limited;
mod outer_layers;
mod page;
mod pairs;
mod server;
mod together;
mod waiting;
