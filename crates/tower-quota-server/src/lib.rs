//! A rate limit server for gateways and services in any language.
//!
//! The program `tower-quota-server` serves the limits of a document over HTTP, and the limits of a folder to Envoy. Counters
//! are in memory or in Redis:
//!
//! ```text
//! tower-quota-server --rules rules.yaml
//! tower-quota-server --envoy ratelimit/ --redis redis://redis.internal/
//! ```
//!
//! The program is the product. The library has the parts of the program for its tests, and has no promise of stability: any
//! release may change or remove an item. Pin the exact version if you use the library in a server of your own.
//!
//! | module | contents |
//! |---|---|
//! | [`auth`] | HTTP: gateways that ask before they forward a request |
//! | [`check`] | HTTP: decisions as JSON, for services in any language |
//! | [`envoy`] | Envoy's protocol, with limits in the YAML of envoyproxy/ratelimit |
//! | [`http`] | what the doors of HTTP share |
//! | [`messages`] | the messages of Envoy |
//! | [`options`] | the flags and environment variables of the program |
//! | [`serve`] | a server that runs until a signal |
//! | [`store`] | counters in memory, in Redis, or leased from Redis |
//! | [`logs`] | the logs of the program |
//!
//! The server has no limits of its own. It turns each call into charges, and a
//! [`Store`](tower_quota_core::Store) decides the charges in one step.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod auth;
pub mod check;
pub mod envoy;
mod file;
pub mod http;
pub mod logs;
pub mod messages;
mod metrics;
pub mod options;
pub mod serve;
pub mod store;
mod tls;
