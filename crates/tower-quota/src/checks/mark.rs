//! The mark that a layer attaches to a request for the layers inside it.

use http::{Extensions, Request};
use smallvec::SmallVec;
use tower_quota_core::Name;

/// The limits that have counted a request, each with the scope of its key.
///
/// It is attached only while the policy is watched, because an extension costs an allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mark(SmallVec<[(usize, Name, Name); 2]>);

impl Mark {
    /// Adds a limit, the scope of the key that it counts, and the number of its store.
    pub(super) fn add(&mut self, store: usize, limit: Name, scope: Name) {
        self.0.push((store, limit, scope));
    }

    /// Returns whether an outer layer has counted the same limit and key in the same store.
    pub(super) fn is_marked(
        extensions: &Extensions,
        store: usize,
        limit: Name,
        scope: Name,
    ) -> bool {
        extensions
            .get::<Self>()
            .is_some_and(|mark| mark.0.contains(&(store, limit, scope)))
    }

    /// Attaches the mark to the request, together with the marks of other layers.
    pub(crate) fn attach_to<B>(self, request: &mut Request<B>) {
        if self.0.is_empty() {
            return;
        }
        match request.extensions_mut().get_mut::<Self>() {
            Some(left) => left.0.extend(self.0),
            None => drop(request.extensions_mut().insert(self)),
        }
    }
}
