//! An empty library. This package has only tests.
