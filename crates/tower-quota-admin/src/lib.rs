//! An admin API for [`tower_quota`]: an axum [`Router`](axum::Router) over [live rules](tower_quota_live).
//!
//! People on call and programs read and change the rules, look at clients, reset, block and allow them, and see who is
//! limited, without a deploy.
//!
//! ```no_run
//! use std::net::SocketAddr;
//! use tower_quota::{MemoryStore, Policy, RateLimitLayer};
//! use tower_quota_admin::AdminOptions;
//! use tower_quota_live::{LiveOptions, LiveRules, MemoryRules, WithoutRules};
//!
//! # async fn serve(token: String) -> Result<(), Box<dyn std::error::Error>> {
//! let layer = RateLimitLayer::new(MemoryStore::new(), Policy::new());
//! // Until the first rules are put, requests get 503.
//! let options = LiveOptions::new().without_rules(WithoutRules::Refuse);
//! let live = LiveRules::start(layer.handle(), MemoryRules::new(), options).await?;
//! let admin = tower_quota_admin::router(live, AdminOptions::new().bearer_token("on-call", token))?;
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:3001").await?;
//! axum::serve(listener, admin.into_make_service_with_connect_info::<SocketAddr>()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The [guide](https://docs.rs/tower-quota/latest/tower_quota/guide/admin/) shows how to use it, and [`openapi`] describes every route.
//!
//! What always holds:
//!
//! * **No router without authentication.** [`router`] returns an [`AdminError`] unless the [`AdminOptions`] name bearer
//!   tokens or a layer of the application. Wrong tokens are limited by address, right ones never.
//! * **Every change is an audit record** with its author, by the [live rules](tower_quota_live).
//! * **Errors are problem details** (RFC 9457) of a [`ProblemKind`], which stay the same.
//! * **Keys are shown hashed** unless the options allow more, and secrets never.
//! * **Everything is bounded**: bodies, answers' times, lists, event streams.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `redis` | [`StoreFigures`] of a `RedisStore`: breakers, queue, errors; top clients of all instances, where live rules share them |
//! | `lease` | [`StoreFigures`] of leases |

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod api;
mod auth;
mod body;
mod change;
mod error;
mod extract;
mod figures;
mod openapi;
mod options;
mod page;
mod precondition;
mod problem;
mod protect;
mod recent;
mod router;
mod routes;
mod status;
mod streams;

pub use self::auth::{Author, Role};
pub use self::error::AdminError;
pub use self::figures::StoreFigures;
pub use self::options::AdminOptions;
pub use self::problem::ProblemKind;
pub use self::router::{openapi, router};
