/// Reads a value from a request or response, like a closure.
pub trait Reader<T: ?Sized> {
    /// The value.
    type Value;

    /// Reads the value.
    fn read(&self, from: &T) -> Self::Value;
}

impl<T: ?Sized, V, F: Fn(&T) -> V> Reader<T> for F {
    type Value = V;

    fn read(&self, from: &T) -> V {
        self(from)
    }
}

/// Always reads the same value.
#[derive(Clone, Copy, Debug)]
pub struct Constant<V>(pub V);

impl<T: ?Sized, V: Clone> Reader<T> for Constant<V> {
    type Value = V;

    fn read(&self, _: &T) -> V {
        self.0.clone()
    }
}
