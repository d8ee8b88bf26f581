//! The examples are the files next to this one, each complete in itself.
