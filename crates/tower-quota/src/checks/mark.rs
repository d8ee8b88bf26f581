use http::{Extensions, Request};
use tower_quota_core::Name;

/// Tells inner layers which limits counted the request, with store and scope.
///
/// A mark costs an allocation, so only a watching layer attaches marks.
#[derive(Clone, Default)]
pub(crate) struct Mark(Vec<(usize, Name, Name)>);

impl Mark {
    pub(super) fn add(&mut self, store: usize, limit: Name, scope: Name) {
        self.0.push((store, limit, scope));
    }

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

    pub(crate) fn attach_to<B>(self, request: &mut Request<B>) {
        if !self.0.is_empty() {
            let marks = request.extensions_mut().get_or_insert_default::<Self>();
            marks.0.extend(self.0);
        }
    }
}
