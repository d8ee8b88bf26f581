//! Commands on running services: by their admin API, or by the Redis that they share.
//!
//! Either way a command sends requests of the admin API. `http` sends them to a service. `local` answers them in this
//! process, by the same router over Redis. So both do, refuse and record the same.

mod api;
pub(crate) mod blocks;
pub(crate) mod clients;
pub(crate) mod document;
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
