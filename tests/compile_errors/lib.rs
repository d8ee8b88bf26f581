//! The package contains only tests.
