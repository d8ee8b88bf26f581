//! Takes the steps of a run in the stores of a world and in the model.

mod conclude;

use std::error::Error;
use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, Operation, Store, Undecidable};

use super::aspect::Aspect;
use super::ledger::Ledger;
use super::shape::{Meeting, Shape};
use super::step::Step;
use super::world::{Effect, Fault, World};
use super::{Pairs, Promise};
use crate::model::{Model, is_same};

/// The number of keys: two clients, their common key, and the same again for the comparison at the end.
pub(super) const KEYS: usize = 6;

pub(super) struct Run<'a, W: World> {
    pairs: &'a Pairs,
    shape: &'a Shape,
    promise: Promise,
    world: W,
    instances: [W::Store; 2],
    keys: &'a [Key<'static>; KEYS],
    model: Model,
    ledger: Ledger,
    admissions: usize,
    open: Vec<Open<'a>>,
    is_raised: bool,
    is_cut: [bool; 2],
}

/// An admitted request that may be refunded.
struct Open<'a> {
    /// The number of the admission, and the client.
    admission: (usize, usize),
    instance: usize,
    charges: Vec<Charge<'a>>,
    decision: Decision,
}

impl<'a, W: World> Run<'a, W> {
    pub(super) async fn new(
        pairs: &'a Pairs,
        shape: &'a Shape,
        keys: &'a [Key<'static>; KEYS],
        mut world: W,
    ) -> Self {
        let instances = [world.open(0).await, world.open(1).await];
        Self {
            pairs,
            shape,
            promise: pairs.promise_of_shape(shape),
            world,
            instances,
            keys,
            model: Model::default(),
            ledger: Ledger::default(),
            admissions: 0,
            open: Vec::new(),
            is_raised: false,
            is_cut: [false; 2],
        }
    }

    /// Takes all steps, and then compares the stores with untouched ones. Returns the position of an impossible step.
    pub(super) async fn take(&mut self, steps: &[Step]) -> Result<Option<usize>, String> {
        for (position, step) in steps.iter().enumerate() {
            let is_idle = step.is_idle_twice() && position > 0 && steps[position - 1] == *step;
            if is_idle || !self.step(*step).await? {
                return Ok(Some(position));
            }
        }
        if let Some((quotas, excludes_forced)) = self.promise.bound() {
            self.ledger.audit(self.shape, quotas, excludes_forced)?;
        }
        self.conclude().await?;
        Ok(None)
    }

    /// Takes a step. Returns whether the step was possible.
    async fn step(&mut self, step: Step) -> Result<bool, String> {
        match step {
            Step::Check { instance, client } => {
                for _ in 0..self.pairs.burst {
                    self.check(instance, client).await?;
                }
            }
            Step::Settle => {
                let Some(open) = self.open.last() else {
                    return Ok(false);
                };
                let (instance, client) = (open.instance, open.admission.1);
                let charges = open.charges.iter().map(|charge| charge.cost(1));
                // A hold is settled only if nothing else is.
                let is_alone = self.shape.limits.len() == 1;
                let charges = charges.filter(|charge| is_alone || !charge.is_hold());
                let charges: Vec<Charge<'_>> = charges.collect();
                self.admissions += 1;
                let settlement = (self.admissions, client);
                let taken_at = open.decision.at();
                self.send(
                    instance,
                    settlement,
                    Operation::Surcharge { taken_at },
                    &charges,
                )
                .await?;
            }
            Step::Refund => {
                let Some(open) = self.open.pop() else {
                    return Ok(false);
                };
                let taken_at = open.decision.at();
                self.follow(&open, Operation::Refund { taken_at }, false)
                    .await?;
            }
            Step::Release | Step::Renew => {
                if self.open.is_empty() {
                    return Ok(false);
                }
                let open = self.open.remove(0);
                let taken_at = open.decision.at();
                let operation = match step {
                    Step::Release => Operation::Refund { taken_at },
                    _ => Operation::Renew { taken_at },
                };
                self.follow(&open, operation, true).await?;
                self.open.insert(0, open);
            }
            Step::Reset | Step::Peek => {
                let is_reset = step == Step::Reset;
                let operation = if is_reset {
                    Operation::Reset
                } else {
                    Operation::Peek
                };
                let charges = self.charges(1, 0);
                if self.apply(1, operation, &charges).await?.is_some() && is_reset {
                    self.forget();
                }
            }
            Step::Change => self.is_raised = !self.is_raised,
            Step::Pass => self.pass(self.shape.window() / 2).await,
            Step::Expire => self.pass(self.shape.window()).await,
            Step::Fault(Fault::Restart(instance)) => return Ok(self.restart(instance).await),
            Step::Fault(Fault::Cut(instance)) => {
                let fault = match self.is_cut[instance] {
                    true => Fault::Join(instance),
                    false => Fault::Cut(instance),
                };
                self.is_cut[instance] = !self.is_cut[instance];
                return Ok(self.fault(fault).await != Effect::Unknown);
            }
            Step::Fault(fault) => return Ok(self.fault(fault).await != Effect::Unknown),
        }
        Ok(true)
    }

    async fn pass(&mut self, span: Duration) {
        // A store with a bound may give holds other instants than the ledger, some microseconds apart.
        let rounding = u64::from(self.promise != Promise::Exact);
        self.world
            .pass(span + Duration::from_millis(rounding))
            .await;
    }

    fn charges(&self, instance: usize, client: usize) -> Vec<Charge<'a>> {
        let common = if client < 2 { 2 } else { 5 };
        let (own, common) = (&self.keys[client], &self.keys[common]);
        self.shape.charges(instance, own, common, self.is_raised)
    }

    async fn check(&mut self, instance: usize, client: usize) -> Result<(), String> {
        let charges = self.charges(instance, client);
        self.admissions += 1;
        let admission = (self.admissions, client);
        let decision = self
            .send(instance, admission, Operation::Check, &charges)
            .await?;
        if let Some(decision) = decision.filter(Decision::is_allowed) {
            self.open.push(Open {
                admission,
                instance,
                charges,
                decision,
            });
        }
        self.world.pass(self.pairs.pace).await;
        Ok(())
    }

    /// Applies an operation to the units of an admitted request.
    async fn follow(
        &mut self,
        open: &Open<'a>,
        operation: Operation,
        only_holds: bool,
    ) -> Result<(), String> {
        let mut charges = Vec::new();
        for (charge, status) in open.charges.iter().zip(open.decision.statuses()) {
            let charge = charge.cost(status.taken);
            if charge.is_hold() || !only_holds {
                charges.push(charge.turn(status.reset_after()));
            }
        }
        self.send(open.instance, open.admission, operation, &charges)
            .await?;
        Ok(())
    }

    /// Applies an operation, and records the units.
    async fn send(
        &mut self,
        instance: usize,
        admission: (usize, usize),
        operation: Operation,
        charges: &[Charge<'_>],
    ) -> Result<Option<Decision>, String> {
        let at = self.world.now();
        let decision = self.apply(instance, operation, charges).await?;
        if let Some(decision) = &decision {
            let ledger = &mut self.ledger;
            ledger.record(self.shape, admission, operation, charges, decision, at);
        }
        Ok(decision)
    }

    async fn restart(&mut self, instance: usize) -> bool {
        let effect = self.fault(Fault::Restart(instance)).await;
        if effect == Effect::Unknown {
            return false;
        }
        // A process that has ended settles no request.
        self.open
            .retain(|open| open.instance != instance && effect != Effect::Lost);
        self.instances[instance] = self.world.open(instance).await;
        if effect == Effect::Lost {
            self.instances[1 - instance] = self.world.open(1 - instance).await;
        }
        true
    }

    async fn fault(&mut self, fault: Fault) -> Effect {
        let effect = self.world.fault(fault, self.keys).await;
        if effect == Effect::Lost {
            self.model = Model::default();
            self.forget();
        }
        effect
    }

    /// Forgets the admitted units. A refund after a loss may reach later units, so none is sent.
    fn forget(&mut self) {
        self.ledger.clear();
        if self.promise != Promise::Exact {
            self.open.clear();
        }
    }

    /// Applies an operation in the store and, if the promise is exact, in the model.
    ///
    /// Returns `None` if the store could not answer.
    async fn apply(
        &mut self,
        instance: usize,
        operation: Operation,
        charges: &[Charge<'_>],
    ) -> Result<Option<Decision>, String> {
        let now = self.world.now();
        let (store, mut found) = (&self.instances[instance], Decision::default());
        // Instance 1 asks like a layer, which first tries to decide without a wait.
        let is_at_once = instance == 1 && operation == Operation::Check;
        if !is_at_once || !store.check_at_once(charges, &mut found) {
            found = match store.apply(operation, charges).await {
                Ok(found) => found,
                Err(error) if self.may_fail(instance, &error) => return Ok(None),
                Err(error) => return Err(format!("the store failed: {error:?}")),
            };
        }
        if self.promise == Promise::Exact {
            let expected = self.model.apply(operation, charges, now);
            if !is_same(&found, &expected, &[]) {
                return Err(format!(
                    "the model says\n{expected:#?}\nand the store\n{found:#?}"
                ));
            }
        }
        Ok(Some(found))
    }

    fn may_fail(&self, instance: usize, error: &(dyn Error + 'static)) -> bool {
        if self.is_cut[instance] {
            return true;
        }
        let has = |one: &Aspect, other: &Aspect| {
            self.shape.aspects == [*one, *other] || self.shape.aspects == [*other, *one]
        };
        let text = format!("{error:?}");
        let mut errors = self.pairs.errors.iter();
        self.shape.meeting == Meeting::TwoKeys
            && errors.any(|(one, other, name)| has(one, other) && text.contains(name))
            && is_undecidable(error)
    }
}

fn is_undecidable(error: &(dyn Error + 'static)) -> bool {
    error.is::<Undecidable>() || error.source().is_some_and(is_undecidable)
}
