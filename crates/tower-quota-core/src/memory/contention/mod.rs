//! Threads that collide in one store: some order of their requests, one after the other, explains all decisions.
//!
//! `races` lets real threads run into each other. `history` asks the model whether their decisions can be right.

mod crowd;
mod history;
mod races;
