use std::collections::HashMap;

use super::Check;
use super::turns::Turns;
use crate::head::RequestHead;
use crate::key::forwarding_header;

/// The largest number of paths that a proxy uses for health checks.
const HEALTH_CHECKS: usize = 3;

/// What a watch knows about the examined requests.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) requests: u64,
    /// The number of suspect requests by subject, or `None` after a correct request.
    pub(super) suspects: HashMap<(Check, String), Option<u64>>,
    unsent_header: Option<String>,
    paths: Vec<String>,
    pub(super) turns: Turns,
}

impl Seen {
    pub(super) fn suspect(&mut self, check: Check, subject: &str) -> &mut Option<u64> {
        let suspect = (check, subject.to_owned());
        self.suspects.entry(suspect).or_insert(Some(0))
    }

    /// Returns whether few paths were seen so far, as from health checks.
    pub(super) fn may_be_health_check(&mut self, header: &str, path: &str) -> bool {
        self.unsent_header = Some(header.to_owned());
        if self.paths.len() <= HEALTH_CHECKS && !self.paths.iter().any(|known| known == path) {
            self.paths.push(path.to_owned());
        }
        self.paths.len() <= HEALTH_CHECKS
    }

    pub(super) fn is_forwarded(&self, head: &RequestHead<'_>) -> bool {
        let unsent = self.unsent_header.as_ref();
        forwarding_header(head.headers()).is_some()
            || unsent.is_some_and(|header| head.headers().contains_key(header))
    }
}
