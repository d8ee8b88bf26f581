//! The sources of limits.

use std::path::PathBuf;

use super::config::{EnvoyConfig, EnvoyFiles, Problems};
use super::xds::{Subscription, XdsOptions};

/// Where limits come from, a folder or an xDS server.
///
/// ```no_run
/// use tower_quota_server::envoy::EnvoySource;
///
/// # async fn example() {
/// let mut source = EnvoySource::files("ratelimit/", false);
/// loop {
///     match source.next().await {
///         Ok(config) => println!("{} limits", config.limits()),
///         Err(problems) => println!("the earlier limits stay: {problems}"),
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct EnvoySource(Kind);

#[derive(Debug)]
enum Kind {
    Files(EnvoyFiles),
    Xds(Box<Subscription>),
}

impl EnvoySource {
    /// Reads a file or a folder once per second. `merge` allows a domain in several files.
    pub fn files(path: impl Into<PathBuf>, merge: bool) -> Self {
        Self(Kind::Files(EnvoyFiles::new(path, merge)))
    }

    /// Subscribes to the limits of an xDS server, such as Envoy Gateway. `merge` allows a domain in several resources.
    ///
    /// Does not connect yet.
    ///
    /// # Errors
    /// Returns an option that cannot be used, such as a certificate that cannot be read.
    pub fn xds(options: &XdsOptions, merge: bool) -> Result<Self, Problems> {
        let subscription = Subscription::new(options, merge)?;
        Ok(Self(Kind::Xds(Box::new(subscription))))
    }

    /// Waits for the next limits. The first call returns the first limits.
    ///
    /// If you drop the future of a call, an xDS update may be lost.
    ///
    /// # Errors
    /// Returns the problems of limits that cannot be used, and the reason of a lost connection, once for each outage. Keep
    /// the earlier limits, and call `next` again.
    pub async fn next(&mut self) -> Result<EnvoyConfig, Problems> {
        match &mut self.0 {
            Kind::Files(files) => files.next().await,
            Kind::Xds(subscription) => subscription.next().await,
        }
    }
}
