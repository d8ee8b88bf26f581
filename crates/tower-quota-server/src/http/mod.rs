//! The parts that the doors of HTTP share.
//!
//! | module | contents |
//! |---|---|
//! | `body` | reads JSON, with a longest body and a deadline |
//! | `gate` | the layer with the limits of the documents, around a service that admits every request |
//! | `openapi` | the description of the routes |
//! | `options` | the settings of the doors, which are flags of the program |
//! | `path` | the path that a service may read from another spelling |
//! | `problem` | errors, as problem details |
//! | `rules` | reads documents for the server |
//! | `token` | a secret that callers send |

mod body;
mod gate;
mod openapi;
mod options;
mod path;
mod problem;
mod rules;
mod token;

pub(crate) use self::body::{expect_json, json, read};
pub use self::gate::Gate;
pub use self::openapi::openapi;
pub use self::options::HttpOptions;
pub(crate) use self::path::with_plain_path;
pub(crate) use self::problem::Problem;
pub(crate) use self::rules::Given;
pub use self::rules::{advice, read_rules};
pub use self::token::Token;
pub(crate) use self::token::{FIELD as TOKEN, only, secret};
