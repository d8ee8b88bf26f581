//! Commands on running services: by their admin API, or by the Redis that they share.
//!
//! Either way a command is a `Call` of the admin API. `http` sends it to a service; `local` answers it in this process,
//! by the same router over Redis. So both do, refuse and record the same.

pub(crate) mod blocks;
mod call;
pub(crate) mod clients;
pub(crate) mod explain;
mod http;
mod local;
pub(crate) mod rollout;
pub(crate) mod rules;
pub(crate) mod status;
mod target;
pub(crate) mod text;
mod tls;

pub(crate) use self::call::{Answer, Call};
pub(crate) use self::target::{Connection, TargetArguments};
