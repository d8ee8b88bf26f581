//! Shedding: the limits of a service that is overloaded, in virtual time and around a real server.
//!
//! The suite `limits` runs the simulator of tower-quota-shed, whose figures are the same on every machine. The suite `shed` sends
//! requests over sockets to a server, at times that do not depend on the answers.

mod classes;
mod client;
mod contenders;
mod cost;
mod limits;
mod overload;

#[path = "../../../crates/tower-quota-shed/src/gate/bodies.rs"]
mod bodies;
#[allow(dead_code, reason = "the layer uses more")]
#[path = "../../../crates/tower-quota-shed/src/gate/count.rs"]
mod count;
#[path = "../../../crates/tower-quota-shed/tests/simulation/limit.rs"]
mod limit;
#[path = "../../../crates/tower-quota-shed/tests/simulation/peers.rs"]
mod peers;
#[allow(dead_code, reason = "tests look at the limits too")]
#[path = "../../../crates/tower-quota-shed/tests/simulation/service.rs"]
mod service;
mod sync {
    pub(super) use core::sync::atomic::{AtomicU64, Ordering};
}

use tokio::runtime::Builder;

use crate::Outcome;
use crate::report::Report;

pub(crate) use self::limits::run as limits;

/// Measures a real server. Needs a quiet machine, because the server and its clients share the cores.
pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let mut tables = Vec::new();
    tables.extend(runtime.block_on(overload::loads(quick))?);
    tables.push(runtime.block_on(overload::step(quick))?);
    tables.extend(runtime.block_on(classes::run(quick))?);
    drop(runtime);
    tables.push(cost::run(quick)?);
    Ok(Report::of(tables))
}
