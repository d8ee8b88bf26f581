use core::fmt;
use std::sync::Arc;

use tower_quota_core::Quota;

use crate::head::RequestHead;
use crate::limit::Limit;

pub(super) type Choose = dyn Fn(&RequestHead<'_>, &mut Chosen<'_>) + Send + Sync;

#[derive(Clone)]
pub(super) struct Choice {
    pub(super) limits: Vec<Limit>,
    pub(super) choose: Arc<Choose>,
}

/// The chosen limits of a request. See [`Policy::choose`](crate::Policy::choose).
pub struct Chosen<'a> {
    pub(super) add: &'a mut dyn FnMut(usize, Option<Quota>, bool),
}

impl Chosen<'_> {
    /// Adds the limit at this position in the list, with this quota or else its own.
    ///
    /// Your quota precedes [`Limit::quota_with`]. Duplicates, and positions outside the list, are ignored.
    pub fn add(&mut self, position: usize, quota: Option<Quota>) {
        (self.add)(position, quota, false);
    }

    /// Leaves out the limit at this position, unless an [override](crate::Policy::overrides) gives the client a quota.
    pub fn leave_out(&mut self, position: usize) {
        (self.add)(position, None, true);
    }
}

impl fmt::Debug for Chosen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chosen")
    }
}
