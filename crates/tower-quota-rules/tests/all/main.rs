//! Tests of documents, from the text to the answers of a service.

mod bad;
mod documents;
mod gateway;
mod hostile;
mod index;
mod round_trip;
mod schema;
