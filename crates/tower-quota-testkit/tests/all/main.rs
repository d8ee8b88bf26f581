//! The servers, the faults and the stores that tests of other crates use.

mod faults;
mod redis_server;
mod scripted_store;
