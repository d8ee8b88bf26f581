//! How a layer answers: what its builder was told.

use core::time::Duration;
use std::sync::Arc;

use http::HeaderMap;
use tollgate_core::{Decision, Name};

use super::fields::Fields;
use super::negotiated::Negotiated;
use super::particulars::Particulars;
use super::partition::Partitions;
use super::refusal::Refusal;
use super::shadow;
use super::telling::shadows;

/// What a layer's answers are made by.
#[derive(Clone)]
pub(crate) struct Answers {
    pub(crate) fields: Arc<Fields>,
    pub(crate) refusal: Arc<dyn Refusal>,
    /// Makes partition keys, if clients are told of them.
    pub(crate) partitions: Option<Partitions>,
    /// Who refuses, as gRPC clients are told.
    pub(crate) grpc_domain: Name,
    /// Whether clients are told of limits that would have refused.
    pub(crate) tells_shadows: bool,
    /// The most that is added to a client's wait.
    pub(crate) most_jitter: Duration,
}

impl Answers {
    pub(crate) fn new(fields: Fields) -> Self {
        Self {
            fields: Arc::new(fields),
            refusal: Arc::new(Negotiated),
            partitions: None,
            grpc_domain: const { Name::new("tollgate") },
            tells_shadows: false,
            most_jitter: Duration::ZERO,
        }
    }

    /// Adds what the store's decision has to say to the headers of its response.
    pub(crate) fn write(&self, decision: &Decision, particulars: &Particulars, headers: &mut HeaderMap) {
        self.fields.write(decision, particulars, headers);
        self.write_shadows(decision, headers);
    }

    /// Adds what an instance has decided by its own counters.
    pub(crate) fn write_local(&self, decision: &Decision, particulars: &Particulars, headers: &mut HeaderMap) {
        self.fields.write_local(decision, particulars, headers);
        self.write_shadows(decision, headers);
    }

    fn write_shadows(&self, decision: &Decision, headers: &mut HeaderMap) {
        if self.tells_shadows {
            shadow::write(shadows(decision).map(|standing| standing.name), headers);
        }
    }

    /// What one refused client waits longer than it must.
    pub(crate) fn draw_jitter(&self) -> Duration {
        match u64::try_from(self.most_jitter.as_micros()) {
            Ok(0) => Duration::ZERO,
            most => Duration::from_micros(fastrand::u64(0..=most.unwrap_or(u64::MAX))),
        }
    }
}
