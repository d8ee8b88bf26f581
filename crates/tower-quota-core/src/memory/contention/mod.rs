//! Threads that collide in one store: some order of their requests, one after the other, explains all decisions.
//!
//! `races` lets real threads run into each other, and `models` goes through every order in which a few can. Both ask
//! the model whether what came out can be right, in `history`.

#[cfg(not(loom))]
mod crowd;
mod history;
#[cfg(loom)]
mod models;
#[cfg(not(loom))]
mod races;
