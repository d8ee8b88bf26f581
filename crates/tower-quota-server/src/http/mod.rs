//! The parts that the doors of HTTP share.
//!
//! | module | contents |
//! |---|---|
//! | `body` | reads JSON, with a longest body and a deadline |
//! | `flags` | the flags of the program |
//! | `gate` | the layer with the limits of the documents, around a service that admits every request |
//! | `object` | reads JSON objects, and no lists |
//! | `openapi` | the description of the routes |
//! | `options` | the settings of the doors |
//! | `path` | the path that a service may read from another spelling |
//! | `problem` | errors, as problem details |
//! | `rules` | reads documents for the server |
//! | `token` | a secret that callers send |

mod body;
mod flags;
mod gate;
mod object;
mod openapi;
mod options;
mod path;
mod problem;
mod rules;
mod token;

pub(crate) use self::body::{bytes, json};
pub use self::flags::HttpFlags;
pub(crate) use self::gate::Decided;
pub use self::gate::Gate;
pub(crate) use self::object::Object;
pub use self::openapi::openapi;
pub use self::options::HttpOptions;
pub(crate) use self::path::with_plain_path;
pub(crate) use self::problem::Problem;
pub(crate) use self::rules::Given;
pub use self::rules::{advice, read_rules};
pub(crate) use self::token::FIELD as TOKEN;
pub use self::token::{ShortToken, Token};
