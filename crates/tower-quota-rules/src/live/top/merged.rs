//! The clients with most requests on all instances.

use serde::{Deserialize, Serialize};
use tower_quota::{Key, TopClient};

/// The longest readable key that is published, in bytes. Clients choose their keys.
const LONGEST_TEXT: usize = 128;

/// The clients with most requests on all instances that have published their figures.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergedTop {
    /// The clients, those with most requests first; at most [`TopClient::MOST`].
    pub clients: Vec<MergedClient>,
    /// The number of instances whose figures are in the sums.
    pub instances: u64,
}

/// A client with many requests, counted on all instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MergedClient {
    /// The limit. If the client was refused, the limit that refused it.
    pub limit: String,
    /// The scope of its key, such as `header x-api-key`.
    pub scope: String,
    /// The hash of its key, as audit records have it: 16 hexadecimal digits.
    pub hash: String,
    /// Its key, if the instances publish [readable ones](super::super::LiveOptions::readable_keys).
    pub text: Option<String>,
    /// True for the counter of all clients that send no key.
    pub has_no_key: bool,
    /// The requests that it certainly sent to the instances which list it.
    #[serde(skip)]
    pub at_least: u64,
}

impl MergedClient {
    pub(super) fn new(
        client: &TopClient,
        hash: impl Fn(&Key<'_>) -> u64,
        is_readable: bool,
    ) -> Self {
        let key = client.key();
        let text = if is_readable { client.text() } else { None };
        Self {
            limit: client.limit().as_str().to_owned(),
            scope: key.scope().as_str().to_owned(),
            hash: format!("{:016x}", hash(key)),
            text: text.filter(|text| text.len() <= LONGEST_TEXT),
            has_no_key: key.as_bytes().is_empty(),
            at_least: client.at_least(),
        }
    }
}
