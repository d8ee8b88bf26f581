//! Rules that change while requests run: real files, real Redis servers, instances in this process and in others.

mod blocks;
mod file;
mod fixture;
mod fleet;
mod following;
mod processes;
mod redis;
mod rollouts;
mod stores;
