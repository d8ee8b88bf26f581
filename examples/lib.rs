//! The examples are the files next to this one.
