//! Tests of documents, from the text to the answers of a service.

mod assign;
mod bad;
mod change;
mod code;
mod documents;
mod gateway;
mod hostile;
mod include;
mod index;
mod limits;
mod reasons;
mod round_trip;
mod schema;
