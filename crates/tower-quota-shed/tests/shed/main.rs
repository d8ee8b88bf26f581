//! The layer around services, in virtual time where time matters.

mod classes;
mod log;
mod places;
mod queue;
mod refusals;
mod service;
