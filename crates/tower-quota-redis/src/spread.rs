//! Decisions about subjects in several partitions.
//!
//! No script can reach two nodes of a cluster, so each partition decides its part, one after the other, those that count
//! everyone last: they are the likeliest to be asked by many at once, and the dearest to hold for nothing. When one
//! refuses, or fails, what the parts before it took is given back. So no more is ever admitted than all limits allow; for
//! as long as it takes to ask the rest, less may be.
//!
//! Once a part has refused, all of them are told so: those before it after they have given back, those after it instead
//! of being asked to take. So each judges its charges at their cost and counts the refusal where charges do, and the
//! whole is what one step would have decided.

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::sync::oneshot;
use tower_quota_core::{Charge, Decision, Key, LimitStatus, Operation, Timestamp};

use crate::batch::Batcher;
use crate::error::RedisStoreError;
use crate::keys::KeyNames;
use crate::question::Question;
use crate::template::Part as Charged;

/// A decision in parts.
pub(crate) struct Spread {
    operation: Operation,
    parts: Vec<Part>,
}

/// What one partition decides.
struct Part {
    partition: usize,
    question: Question,
    /// Where its charges stand among those of the request.
    positions: SmallVec<[usize; 4]>,
}

type Answer = Result<Decision, RedisStoreError>;

impl Spread {
    /// The parts of a decision; `None` when all of it is in one partition.
    pub(crate) fn over_partitions(operation: Operation, charges: &[Charge<'_>], keys: &KeyNames) -> Option<Self> {
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
        groups.sort_by_key(|(is_wide, _, _)| *is_wide);
        let parts = groups.into_iter().map(|(_, partition, positions)| {
            let charges: SmallVec<[Charge<'_>; 4]> = positions.iter().map(|&position| charges[position]).collect();
            Part { partition, question: Question::new(operation, &charges, keys), positions }
        });
        Some(Self { operation, parts: parts.collect() })
    }

    /// Decides, and gives back what was taken if nobody is there any more to hear of it.
    pub(crate) async fn decide(self, batchers: Arc<[Batcher]>, answer: oneshot::Sender<Answer>) {
        let mut answers = Vec::with_capacity(self.parts.len());
        let outcome = self.ask(&batchers, &mut answers).await;
        let is_kept = outcome.is_ok();
        let all_pass = answers.iter().all(Decision::is_allowed);
        if answer.send(outcome).is_err() && is_kept && all_pass && self.operation == Operation::Check {
            self.give_back(&batchers, &answers).await;
        }
    }

    async fn ask(&self, batchers: &[Batcher], answers: &mut Vec<Decision>) -> Answer {
        let mut is_refused = false;
        for part in &self.parts {
            let question = match (is_refused, self.together(answers)) {
                (true, _) => part.question.to_refuse(core::iter::empty()),
                (false, Some(most)) => part.question.capped(most),
                (false, None) => part.question.clone(),
            };
            match batchers[part.partition].decide(question).await {
                Ok(decision) => {
                    if self.operation == Operation::Check && !is_refused && !decision.is_allowed() {
                        is_refused = true;
                        self.take_back(batchers, answers).await;
                    }
                    answers.push(decision);
                }
                Err(error) => {
                    if self.operation == Operation::Check && !is_refused {
                        self.give_back(batchers, answers).await;
                    }
                    return Err(error);
                }
            }
        }
        if !is_refused && let Some(most) = self.together(answers) {
            self.level(batchers, answers, most).await;
        }
        Ok(self.put_together(answers))
    }

    /// How many units the charges that take at most their cost have taken at the least; `None` where there are none.
    fn together(&self, answers: &[Decision]) -> Option<u64> {
        if self.operation != Operation::Check {
            return None;
        }
        let asked = self.parts.iter().zip(answers).flat_map(|(part, answer)| part.charges(answer));
        let alike = asked.filter(|(charge, _)| charge.is_at_most && !charge.is_shadow && charge.cost > 0);
        alike.map(|(_, standing)| standing.taken).min()
    }

    /// Gives back what the parts that have been asked took.
    async fn give_back(&self, batchers: &[Batcher], answers: &[Decision]) {
        for (part, answer) in self.parts.iter().zip(answers) {
            part.give_back(batchers, answer, |_, standing| standing.taken).await;
        }
    }

    /// Gives back what charges that take at most their cost have taken beyond what all of them have.
    async fn level(&self, batchers: &[Batcher], answers: &mut [Decision], most: u64) {
        for (part, answer) in self.parts.iter().zip(answers) {
            let surplus = |charge: &Charged, standing: &LimitStatus| match charge.is_at_most {
                true => standing.taken.saturating_sub(most),
                false => 0,
            };
            if part.charges(answer).all(|(charge, standing)| surplus(charge, standing) == 0) {
                continue;
            }
            if let Some(after) = part.give_back(batchers, answer, surplus).await {
                let standings = part.charges(answer).zip(after.statuses()).map(|((charge, before), after)| {
                    let taken = before.taken - surplus(charge, before);
                    LimitStatus { outcome: before.outcome, taken, ..*after }
                });
                *answer = Decision::from_statuses(Operation::Check, answer.at(), standings);
            }
        }
    }

    /// Makes refusals of the answers of the parts that have been asked.
    async fn take_back(&self, batchers: &[Batcher], answers: &mut [Decision]) {
        for (part, answer) in self.parts.iter().zip(answers) {
            if let Some(refusal) = part.take_back(batchers, answer).await {
                *answer = refusal;
            }
        }
    }

    fn put_together(&self, answers: &[Decision]) -> Decision {
        let mut standings: SmallVec<[(usize, LimitStatus); 4]> = SmallVec::new();
        let mut at = Timestamp::EPOCH;
        for (part, answer) in self.parts.iter().zip(answers) {
            at = at.max(answer.at());
            standings.extend(part.positions.iter().copied().zip(answer.statuses().iter().copied()));
        }
        standings.sort_by_key(|(position, _)| *position);
        Decision::from_statuses(self.operation, at, standings.into_iter().map(|(_, standing)| standing))
    }
}

impl Part {
    /// The charges of this part, each with how it stands.
    fn charges<'a>(&'a self, answer: &'a Decision) -> impl Iterator<Item = (&'a Charged, &'a LimitStatus)> {
        self.question.template.charges.iter().zip(answer.statuses())
    }

    /// Gives back some of what this part took. `None` from a server that does not answer: it keeps what was taken, so too
    /// little is admitted, never too much.
    async fn give_back(
        &self,
        batchers: &[Batcher],
        answer: &Decision,
        units: impl Fn(&Charged, &LimitStatus) -> u64,
    ) -> Option<Decision> {
        let units = self.charges(answer).map(|(charge, standing)| units(charge, standing));
        batchers[self.partition].decide(self.question.to_refund(answer.at(), units)).await.ok()
    }

    /// Gives back what this part took, and answers what it says of a request that is refused by another.
    async fn take_back(&self, batchers: &[Batcher], answer: &Decision) -> Option<Decision> {
        let mut after = self.give_back(batchers, answer, |_, standing| standing.taken).await?;
        let counts = self.question.counts_refusals();
        if counts {
            // A shadow that refused has counted it already.
            let counted = answer.statuses().iter().map(|standing| standing.outcome.is_refusal());
            after = batchers[self.partition].decide(self.question.to_refuse(counted)).await.ok()?;
        }
        let standings = after.statuses().iter().zip(answer.statuses()).map(|(after, before)| {
            // A refund judges nothing: what each limit said of the request still holds.
            let outcome = if counts && !before.outcome.is_refusal() { after.outcome } else { before.outcome };
            LimitStatus { outcome, taken: 0, ..*after }
        });
        Some(Decision::from_statuses(Operation::Refuse, after.at(), standings))
    }
}
