//! Tests of the servers and of the fault proxy.

mod faults;
mod redis_server;
