//! An admin API for [`tower_quota`], as an axum [`Router`](axum::Router) over [live
//! rules](tower_quota_live).
//!
//! You change the rules, operate on clients, and see who is limited, without a deploy.
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
//! See the [guide](https://docs.rs/tower-quota/latest/tower_quota/guide/admin/), and [`openapi`]
//! for all routes.
//!
//! You can rely on these guarantees:
//!
//! * **Every router authenticates.** [`router`] returns an [`AdminError`] unless the
//!   [`AdminOptions`] have bearer tokens or name your own layer. Wrong tokens are limited by
//!   address.
//! * **Every change is an audit record** with its author.
//! * **Errors are problem details** (RFC 9457) of a stable [`ProblemKind`].
//! * **Keys are hashed** unless your options allow readable keys. Secrets are never shown.
//! * **Bodies, response times, lists and event streams are bounded.**
//!
//! # Features
//! | feature | adds |
//! |---|---|
//! | `redis` | [`StoreFigures`] of a `RedisStore`, and top clients of all instances |
//! | `shed` | `AdminOptions::shed_layer`, for the figures of layers that shed load |

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod api;
mod auth;
mod body;
mod change;
mod error;
mod extract;
mod figures;
mod hide;
mod openapi;
mod options;
mod page;
mod places;
mod precondition;
mod problem;
mod protect;
mod recent;
mod router;
mod routes;
#[cfg(feature = "shed")]
mod shed_layer;
mod shedding;
mod status;
mod streams;

pub use self::auth::{Author, Role};
pub use self::error::AdminError;
pub use self::figures::StoreFigures;
pub use self::openapi::openapi;
pub use self::options::AdminOptions;
pub use self::problem::ProblemKind;
pub use self::router::router;
