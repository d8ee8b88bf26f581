//! Limits in the YAML of envoyproxy/ratelimit, and as resources of xDS.
//!
//! 1. [`files`] reads the files of a folder, and notices changes.
//! 2. [`yaml`] parses a file into a bounded tree of nodes with places, and [`resource`] makes the same tree of a resource.
//! 3. [`read`] and [`limit`] read the nodes, record every problem, and build the tree of a domain.
//! 4. [`tree`] finds the limit of a request.
//!
//! A configuration never changes. A server that reads changed files replaces it.

mod fields;
mod files;
mod limit;
mod metadata;
mod node;
mod pattern;
mod problem;
mod read;
mod resource;
mod rule;
mod tree;
mod yaml;

use std::collections::HashMap;

use prost_types::Any;

use self::fields::Reader;
pub use self::files::EnvoyFiles;
use self::node::Node;
use self::problem::Refused;
pub use self::problem::{Problem, Problems};
pub(crate) use self::read::name;
pub(crate) use self::resource::TYPE_URL;
pub(crate) use self::rule::{OnStoreFailure, Rule};
pub(crate) use self::tree::Domain;

/// The limits of all domains, checked and indexed. The default has no limits.
///
/// ```
/// use tower_quota_server::envoy::EnvoyConfig;
///
/// let text = "
/// domain: shop
/// descriptors:
///   - key: user
///     rate_limit: { unit: minute, requests_per_unit: 100 }
/// ";
/// let config = EnvoyConfig::parse([("shop.yaml", text)], false)?;
/// assert_eq!((config.domains(), config.limits()), (1, 1));
/// # Ok::<(), tower_quota_server::envoy::Problems>(())
/// ```
#[derive(Debug, Default)]
pub struct EnvoyConfig {
    domains: HashMap<String, Domain>,
    limits: usize,
}

impl EnvoyConfig {
    /// Reads files, each with its name and text. `merge` allows a domain in several files.
    ///
    /// # Errors
    /// Returns every problem of all files.
    pub fn parse<'f>(
        files: impl IntoIterator<Item = (&'f str, &'f str)>,
        merge: bool,
    ) -> Result<Self, Problems> {
        let files = files.into_iter();
        Self::build(files.map(|(file, text)| (file, yaml::read(text))), merge)
    }

    /// Decodes the resources of an xDS response. `merge` allows a domain in several resources.
    ///
    /// # Errors
    /// Returns every problem of all resources.
    pub fn decode(resources: &[Any], merge: bool) -> Result<Self, Problems> {
        let decoded: Vec<_> = resources.iter().map(resource::decode).collect();
        let roots = decoded.iter().map(|decoded| match decoded {
            Ok(config) => (config.name.as_str(), Ok(resource::root(config))),
            Err(refused) => ("a resource", Err(refused.clone())),
        });
        Self::build(roots, merge)
    }

    fn build<'f>(
        roots: impl Iterator<Item = (&'f str, Result<Node<'f>, Refused>)>,
        merge: bool,
    ) -> Result<Self, Problems> {
        let (mut config, mut problems) = (Self::default(), Problems::default());
        for (file, root) in roots {
            match root {
                Ok(root) => Reader::new(file, &mut problems).root(&root, merge, &mut config),
                Err((place, message)) => problems.add(file, place, message),
            }
        }
        match problems.is_empty() {
            true => Ok(config),
            false => Err(problems),
        }
    }

    /// Returns the number of domains.
    #[must_use]
    pub fn domains(&self) -> usize {
        self.domains.len()
    }

    /// Returns the number of limits.
    #[must_use]
    pub const fn limits(&self) -> usize {
        self.limits
    }

    pub(crate) fn domain(&self, name: &str) -> Option<&Domain> {
        self.domains.get(name)
    }
}
