//! What a layer leaves in a request for the layers inside it.

use http::{Extensions, Request};
use smallvec::SmallVec;
use tower_quota_core::Name;

/// The limits that have counted a request, each with the scope of its key.
///
/// It is left only while the layer is watched: an extension costs an allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mark(SmallVec<[(usize, Name, Name); 2]>);

impl Mark {
    /// Adds a limit, the scope of the key that it counts, and the number of its store.
    pub(super) fn add(&mut self, store: usize, limit: Name, scope: Name) {
        self.0.push((store, limit, scope));
    }

    /// Returns whether a layer around this one has counted the same.
    pub(super) fn is_left(extensions: &Extensions, store: usize, limit: Name, scope: Name) -> bool {
        extensions.get::<Self>().is_some_and(|mark| mark.0.contains(&(store, limit, scope)))
    }

    /// Leaves this in the request, beside what other layers have left.
    pub(crate) fn leave_in<B>(self, request: &mut Request<B>) {
        if self.0.is_empty() {
            return;
        }
        match request.extensions_mut().get_mut::<Self>() {
            Some(left) => left.0.extend(self.0),
            None => drop(request.extensions_mut().insert(self)),
        }
    }
}
