use serde_json::Value;

/// A layer that sheds load. Only the feature `shed` depends on the crate of such layers.
pub(crate) trait Shedding: Send + Sync {
    /// Remembers the figures of this second.
    fn observe(&self);

    /// Returns the present figures, and the refused requests of the last ten seconds.
    fn report(&self) -> Value;
}
