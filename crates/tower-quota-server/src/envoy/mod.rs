//! Envoy's protocol, `envoy.service.ratelimit.v3`.
//!
//! | module | contents |
//! |---|---|
//! | `config` | limits in YAML and as resources, checked and indexed |
//! | `counter` | the names of counters |
//! | `counts` | the metrics of limits |
//! | `decide` | a request, the charges of its limits, the answer |
//! | `door` | the gRPC service |
//! | `source` | files and xDS as sources of limits |
//! | `xds` | the client of an xDS server |

mod config;
mod counter;
mod counts;
mod decide;
mod door;
mod options;
mod source;
mod xds;

pub use self::config::{EnvoyConfig, EnvoyFiles, Problem, Problems};
pub use self::door::EnvoyDoor;
pub use self::options::EnvoyOptions;
pub use self::source::EnvoySource;
pub use self::xds::XdsOptions;
