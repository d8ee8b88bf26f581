//! An admin API for [`tower-quota`](tower_quota).
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod api;
mod auth;
mod body;
mod change;
mod diff;
mod error;
mod extract;
mod figures;
mod openapi;
mod operate;
mod options;
mod page;
mod precondition;
mod problem;
mod protect;
mod router;
mod routes;
mod status;

pub use self::auth::Author;
pub use self::error::AdminError;
pub use self::figures::StoreFigures;
pub use self::options::AdminOptions;
pub use self::problem::ProblemKind;
pub use self::router::{openapi, router};
