//! The layer inside and outside of the layers that services are built with; the tests are all there is.
