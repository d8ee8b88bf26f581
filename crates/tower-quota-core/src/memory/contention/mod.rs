//! Tests that threads which collide in a store get the decisions of some sequential order of their
//! requests.
//!
//! `races` runs real threads on one store. `history` asks the model whether their decisions can be
//! right.

mod crowd;
mod history;
mod races;
