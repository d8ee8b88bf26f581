//! The plain gRPC service in a program of its own, so that it has the allocator of the server.

use std::error::Error;

#[path = "../server/plain.rs"]
mod plain;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let port = std::env::args().nth(1).ok_or("a port is missing")?;
    plain::serve(port.parse()?)
}
