//! The layer inside and outside of the layers that services are built with: only tests.
