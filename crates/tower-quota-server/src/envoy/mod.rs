//! Envoy's protocol, `envoy.service.ratelimit.v3`.
//!
//! | module | contents |
//! |---|---|
//! | `config` | limits in YAML, checked and indexed |
//! | `counter` | the names of counters |
//! | `decide` | a request, the charges of its limits, the answer |
//! | `door` | the gRPC service |

mod config;
mod counter;
mod decide;
mod door;
mod options;

pub use self::config::{EnvoyConfig, EnvoyFiles, Problem, Problems};
pub use self::door::EnvoyDoor;
pub use self::options::{EnvoyOptions, HeaderNames};
