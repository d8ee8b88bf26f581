//! The admin API over real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod auth;
mod blocks;
mod clients;
mod documents;
mod errors;
mod health;
mod openapi;
mod page;
mod server;
mod shadow;
