//! Decides about keys in several partitions.
//!
//! A script cannot reach two nodes of a cluster, so each partition decides its part in turn. The global limits come
//! last, because they are the most contended.
//!
//! 1. If a part refuses or fails, the store refunds the earlier parts, so the request never exceeds a limit. Until the
//!    refund, the store may refuse other requests.
//! 2. After a refusal, the other parts report their statuses and count the refusal, as a single
//!    step would. If such a part fails, the refusal lacks its statuses.
//! 3. While the breaker of a part is open, no part is charged. Parts in doubt come first.
//! 4. Charges of at most their cost take the units that the earlier parts took. If a later part has fewer, the surplus
//!    of the earlier parts stays charged.
//! 5. Refunds, charges and resets reach all parts even if a part fails. The caller gets the first error.

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::sync::oneshot;
use tower_quota_core::{Charge, Decision, Key, LimitStatus, Name, Operation, Timestamp};

use crate::batch::Batcher;
use crate::error::RedisStoreError;
use crate::keys::KeyNames;
use crate::store_request::StoreRequest;
use crate::template::ChargeTemplate;

pub(crate) struct Spread {
    operation: Operation,
    parts: Vec<PartitionRequest>,
}

struct PartitionRequest {
    partition: usize,
    has_global_limit: bool,
    request: StoreRequest,
    positions: SmallVec<[usize; 4]>,
}

type PartitionAnswer = Result<Decision, RedisStoreError>;

impl Spread {
    /// Divides charges by partition. Returns `None` if one partition has all keys.
    pub(crate) fn over_partitions(
        operation: Operation,
        charges: &[Charge<'_>],
        keys: &KeyNames,
    ) -> Option<Self> {
        if keys.partitions() == 1 || charges.len() < 2 {
            return None;
        }
        let mut groups: Vec<(bool, usize, SmallVec<[usize; 4]>)> = Vec::new();
        for (position, charge) in charges.iter().enumerate() {
            let (partition, _) = keys.locate(charge.key());
            let is_wide = *charge.key() == Key::EVERYONE;
            match groups.iter_mut().find(|(_, other, _)| *other == partition) {
                Some((wide, _, positions)) => {
                    *wide |= is_wide;
                    positions.push(position);
                }
                None => groups.push((is_wide, partition, SmallVec::from_slice(&[position]))),
            }
        }
        if groups.len() == 1 {
            return None;
        }
        let parts = groups
            .into_iter()
            .map(|(has_global_limit, partition, positions)| {
                let charges: SmallVec<[Charge<'_>; 4]> = positions
                    .iter()
                    .map(|&position| charges[position])
                    .collect();
                PartitionRequest {
                    partition,
                    has_global_limit,
                    request: StoreRequest::new(operation, &charges, keys),
                    positions,
                }
            });
        let mut parts: Vec<PartitionRequest> = parts.collect();
        // Decide holds first, because the decision has their instant. Dry runs follow enforced
        // holds.
        parts.sort_by_key(|part| {
            let hold = part.hold().map(|hold| hold.is_shadow);
            (hold.is_none(), hold, part.has_global_limit)
        });
        for part in parts.iter_mut().skip(1) {
            for charge in &mut part.request.template.charges {
                // Let a dry run only report, because it must not fail the request.
                if charge.is_hold() && charge.is_shadow {
                    charge.cost = 0;
                }
            }
        }
        Some(Self { operation, parts })
    }

    pub(crate) fn second_hold(&self) -> Option<Name> {
        let hold = self
            .parts
            .iter()
            .filter_map(PartitionRequest::hold)
            .nth(1)?;
        Some(hold.name)
    }

    /// Fails a check if a breaker is open, and moves parts in doubt to the front.
    pub(crate) fn ask_breakers(
        &mut self,
        batchers: &[Arc<Batcher>],
    ) -> Result<(), RedisStoreError> {
        if self.operation == Operation::Check
            && let Some(error) = self
                .parts
                .iter()
                .find_map(|part| batchers[part.partition].refusal())
        {
            return Err(error);
        }
        self.parts
            .sort_by_key(|part| batchers[part.partition].is_closed());
        Ok(())
    }

    /// Decides part by part, and refunds the units if the caller leaves.
    pub(crate) async fn decide(
        self,
        batchers: Arc<[Arc<Batcher>]>,
        answer: oneshot::Sender<PartitionAnswer>,
    ) {
        let mut answers = Vec::with_capacity(self.parts.len());
        let outcome = self.ask(&batchers, &mut answers).await;
        let is_kept = outcome.is_ok();
        let all_pass = answers.iter().all(Decision::is_allowed);
        if answer.send(outcome).is_err()
            && is_kept
            && all_pass
            && self.operation == Operation::Check
        {
            self.refund(&batchers, &answers).await;
        }
    }

    async fn ask(&self, batchers: &[Arc<Batcher>], answers: &mut Vec<Decision>) -> PartitionAnswer {
        let (mut is_refused, mut first_error) = (false, None);
        for part in &self.parts {
            // After a refusal, the remaining parts only count the refusal. A capped part takes no
            // more units than the earlier parts.
            let request = match (is_refused, self.common_units(answers)) {
                (true, _) => part.request.to_refuse(core::iter::empty()),
                (false, Some(most)) => part.request.capped(most),
                (false, None) => part.request.clone(),
            };
            match batchers[part.partition].decide(request).await {
                Ok(decision) => {
                    if self.operation == Operation::Check && !is_refused {
                        is_refused = !decision.is_allowed();
                        if is_refused {
                            self.turn_into_refusals(batchers, answers).await;
                        }
                    }
                    answers.push(decision);
                }
                // The request is refused anyway, without the statuses of this part.
                Err(_) if is_refused => {
                    let at = answers.first().map_or(Timestamp::EPOCH, Decision::at);
                    answers.push(Decision::from_statuses(
                        Operation::Refuse,
                        at,
                        core::iter::empty(),
                    ));
                }
                Err(error) if matches!(self.operation, Operation::Check | Operation::Peek) => {
                    if self.operation == Operation::Check {
                        self.refund(batchers, answers).await;
                    }
                    return Err(error);
                }
                // Go on, because the other parts keep their refund, charge or reset.
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        if let Some(error) = first_error {
            return Err(error);
        }
        Ok(self.join(answers))
    }

    fn common_units(&self, answers: &[Decision]) -> Option<u64> {
        if self.operation != Operation::Check {
            return None;
        }
        let asked = self
            .parts
            .iter()
            .zip(answers)
            .flat_map(|(part, answer)| part.charges(answer));
        let at_most =
            asked.filter(|(charge, _)| charge.is_at_most && !charge.is_shadow && charge.cost > 0);
        at_most.map(|(_, status)| status.taken).min()
    }

    async fn refund(&self, batchers: &[Arc<Batcher>], answers: &[Decision]) {
        for (part, answer) in self.parts.iter().zip(answers) {
            part.refund(batchers, answer, |_, status| status.taken)
                .await;
        }
    }

    async fn turn_into_refusals(&self, batchers: &[Arc<Batcher>], answers: &mut [Decision]) {
        for (part, answer) in self.parts.iter().zip(answers) {
            if let Some(refusal) = part.turn_into_refusal(batchers, answer).await {
                *answer = refusal;
            }
        }
    }

    /// Joins the answers in the order of the charges.
    ///
    /// The instant identifies the holds. Without holds, the earliest instant counts, because a bucket could give back
    /// too much at a later instant.
    fn join(&self, answers: &[Decision]) -> Decision {
        let mut statuses: SmallVec<[(usize, LimitStatus); 4]> = SmallVec::new();
        let mut of_parts = self.parts.iter().zip(answers);
        let of_hold = of_parts.find(|(part, _)| part.hold().is_some());
        let earliest = answers.iter().map(Decision::at).min();
        let at = of_hold.map_or(earliest, |(_, answer)| Some(answer.at()));
        let at = at.unwrap_or(Timestamp::EPOCH);
        let most = self.common_units(answers).unwrap_or(u64::MAX);
        for (part, answer) in self.parts.iter().zip(answers) {
            for (&position, (charge, status)) in part.positions.iter().zip(part.charges(answer)) {
                let mut status = *status;
                if charge.is_at_most {
                    // An earlier part may have taken more. The surplus stays charged.
                    status.taken = status.taken.min(most);
                }
                statuses.push((position, status));
            }
        }
        statuses.sort_by_key(|(position, _)| *position);
        let charges = self.parts.iter().map(|part| part.positions.len());
        let is_complete = statuses.len() == charges.sum::<usize>();
        let statuses = statuses.into_iter().map(|(_, status)| status);
        let entries = self.parts.iter().zip(answers).flat_map(|(part, answer)| {
            let entries = answer.entries().iter();
            entries.map(|(position, entry)| (part.positions[*position], entry.clone()))
        });
        let converted = self.parts.iter().zip(answers).flat_map(|(part, answer)| {
            let converted = answer.converted();
            converted.map(|position| part.positions[position])
        });
        // Without the statuses of a part, the other statuses have moved up.
        let converted = converted.filter(|_| is_complete);
        Decision::from_statuses(self.operation, at, statuses)
            .with_entries(entries)
            .with_converted(converted)
    }
}

impl PartitionRequest {
    fn hold(&self) -> Option<&ChargeTemplate> {
        let charges = self.request.template.charges.iter();
        let holds = charges.filter(|charge| charge.is_hold() && charge.cost > 0);
        holds.min_by_key(|hold| hold.is_shadow)
    }

    fn charges<'a>(
        &'a self,
        answer: &'a Decision,
    ) -> impl Iterator<Item = (&'a ChargeTemplate, &'a LimitStatus)> {
        self.request.template.charges.iter().zip(answer.statuses())
    }

    /// Refunds units of this part. Returns `None` if the server does not answer.
    async fn refund(
        &self,
        batchers: &[Arc<Batcher>],
        answer: &Decision,
        units: impl Fn(&ChargeTemplate, &LimitStatus) -> u64,
    ) -> Option<Decision> {
        let units = self
            .charges(answer)
            .map(|(charge, status)| units(charge, status));
        batchers[self.partition]
            .decide(self.request.to_refund(answer, units))
            .await
            .ok()
    }

    async fn turn_into_refusal(
        &self,
        batchers: &[Arc<Batcher>],
        answer: &Decision,
    ) -> Option<Decision> {
        let mut after = self
            .refund(batchers, answer, |_, status| status.taken)
            .await?;
        let counts = self.request.counts_refusals();
        if counts {
            // A shadow that refused has counted already.
            let counted = answer
                .statuses()
                .iter()
                .map(|status| status.outcome.is_refusal());
            after = batchers[self.partition]
                .decide(self.request.to_refuse(counted))
                .await
                .ok()?;
        }
        let statuses = after
            .statuses()
            .iter()
            .zip(answer.statuses())
            .map(|(after, before)| {
                // Keep the outcomes of the request, because a refund has none of its own.
                let outcome = if counts && !before.outcome.is_refusal() {
                    after.outcome
                } else {
                    before.outcome
                };
                LimitStatus {
                    outcome,
                    // Report no units after a refund, which has given the units back.
                    taken: if counts { after.taken } else { 0 },
                    ..*after
                }
            });
        let refusal = Decision::from_statuses(Operation::Refuse, after.at(), statuses);
        Some(refusal.with_converted(answer.converted()))
    }
}
