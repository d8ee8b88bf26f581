//! Limits in the YAML of envoyproxy/ratelimit.
//!
//! 1. [`files`] reads the files of a folder, and notices changes.
//! 2. [`yaml`] parses a file into a bounded tree of nodes with places.
//! 3. [`read`] and [`limit`] read the nodes, record every problem, and build the tree of a domain.
//! 4. [`tree`] finds the limit of a request.
//!
//! A configuration never changes. A server that reads changed files replaces it.

mod fields;
mod files;
mod limit;
mod metadata;
mod pattern;
mod problem;
mod read;
mod rule;
mod tree;
mod yaml;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use self::fields::Reader;
pub use self::files::EnvoyFiles;
pub use self::problem::{Problem, Problems};
pub(crate) use self::rule::{Allowance, OnStoreFailure, Rule};
pub(crate) use self::tree::Domain;

/// The limits of all domains, checked and indexed.
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
        Self::read(files, merge, Problems::default())
    }

    fn read<'f>(
        files: impl IntoIterator<Item = (&'f str, &'f str)>,
        merge: bool,
        mut problems: Problems,
    ) -> Result<Self, Problems> {
        let mut config = Self::default();
        // The first file of each domain.
        let mut first_files = HashMap::new();
        for (file, text) in files {
            config.add(file, text, merge, &mut first_files, &mut problems);
        }
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(problems)
        }
    }

    fn add<'f>(
        &mut self,
        file: &'f str,
        text: &str,
        merge: bool,
        first_files: &mut HashMap<String, &'f str>,
        problems: &mut Problems,
    ) {
        let root = match yaml::read(text) {
            Ok(root) => root,
            Err((place, message)) => return problems.add(file, place, message),
        };
        let mut reader = Reader {
            file,
            problems,
            on_store_failure: OnStoreFailure::Allow,
        };
        let Some(head) = reader.head(&root) else {
            return;
        };
        match first_files.entry(head.domain.to_owned()) {
            Entry::Occupied(first) if !merge => {
                let fix = "give each file a domain of its own, or set MERGE_DOMAIN_CONFIG";
                let message = format!(
                    "the domain {:?} is also in {}: {fix}",
                    head.domain,
                    first.get()
                );
                reader.problem(head.place, message);
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(entry) => {
                entry.insert(file);
            }
        }
        let domain = self.domains.entry(head.domain.to_owned()).or_default();
        self.limits += reader.add(&head, domain);
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
