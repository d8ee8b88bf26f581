//! Runs commands on running services.
//!
//! A command sends requests to the admin API of a service. `target` finds the address and the
//! token in arguments, variables and `contexts`, `http` sends the requests, and `api` reads the answers.

mod api;
pub(crate) mod blocks;
pub(crate) mod clients;
pub(crate) mod contexts;
pub(crate) mod explain;
mod http;
pub(crate) mod put;
mod record;
pub(crate) mod refusals;
pub(crate) mod status;
mod target;
pub(crate) mod versions;

pub(crate) use self::api::Api;
pub(crate) use self::target::{ChangeArguments, Remote, TargetArguments};
