//! The handlers of the API's routes.

pub(crate) mod audit;
mod block_mistakes;
pub(crate) mod blocks;
pub(crate) mod check;
pub(crate) mod clients;
mod count;
pub(crate) mod document;
mod end;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod overrides;
mod reach;
pub(crate) mod refusals;
pub(crate) mod top;
pub(crate) mod totals;
