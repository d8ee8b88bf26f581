//! Runs commands on running services.
//!
//! A command sends requests of the admin API. `http` sends requests to a service. `local` answers
//! requests in this process, with the same router over the shared Redis, so the effects, refusals
//! and records are the same.

mod api;
pub(crate) mod blocks;
pub(crate) mod clients;
pub(crate) mod explain;
mod http;
mod local;
pub(crate) mod put;
mod record;
pub(crate) mod status;
mod target;
pub(crate) mod versions;

pub(crate) use self::api::Api;
pub(crate) use self::target::{ChangeArguments, Remote, TargetArguments};
