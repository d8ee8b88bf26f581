//! Takes the steps of a run in the stores of a world and in the model.

mod conclude;

use std::error::Error;
use std::time::Duration;

use tower_quota_core::{
    Charge, ChargeMode, Decision, Key, Operation, Store, Timestamp, Undecidable,
};

use super::aspect::Aspect;
use super::ledger::{Ledger, Taken};
use super::shape::{COMMON, Meeting, Shape};
use super::step::Step;
use super::world::{Effect, Fault, Server, World};
use super::{Pairs, Promise};
use crate::model::{Model, is_same};

/// The number of keys: two clients, their common key, and the same again for the comparison at the end.
pub(super) const KEYS: usize = 6;
/// More units than any hold has.
const MANY: u64 = 1_000_000;

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
    /// The cuts from the shared server, and from the own servers.
    cuts: [[bool; 2]; 2],
    /// All holds, by the instants of the store.
    holds: Vec<(Timestamp, Vec<Charge<'a>>)>,
    /// Whether a hold may have no request that releases it.
    has_stray_hold: bool,
}

/// An admitted request that may be refunded.
struct Open<'a> {
    instance: usize,
    /// The charges, with the units that they took.
    charges: Vec<Charge<'a>>,
    taken: Taken,
    /// The holds, which may have been taken again.
    held: Taken,
    is_released: bool,
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
            cuts: [[false; 2]; 2],
            holds: Vec::new(),
            has_stray_hold: false,
        }
    }

    /// Takes all steps, and then compares the stores with untouched ones. Returns the position of an impossible step.
    pub(super) async fn take(&mut self, steps: &[Step]) -> Result<Option<usize>, String> {
        if let [.., last] = steps
            && last.is_idle_at_end()
        {
            return Ok(Some(steps.len() - 1));
        }
        for (position, step) in steps.iter().enumerate() {
            let before = position.checked_sub(1).map(|before| steps[before]);
            let is_redundant = before.is_some_and(|before| step.is_redundant_after(before));
            if is_redundant || !self.step(*step).await? {
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
                let (instance, client, taken_at) =
                    (open.instance, open.taken.client, open.taken.at);
                let charges = open.charges.iter().map(|charge| charge.cost(1));
                // A hold is settled only if nothing else is.
                let is_alone = self.shape.limits.len() == 1;
                let charges = charges.filter(|charge| is_alone || !charge.is_hold());
                let charges: Vec<Charge<'_>> = charges.collect();
                self.has_stray_hold |= charges.iter().any(Charge::is_hold);
                let settlement = Operation::Surcharge { taken_at };
                self.take_units(instance, client, settlement, &charges)
                    .await?;
            }
            Step::Refund => {
                let Some(open) = self.open.pop() else {
                    return Ok(false);
                };
                self.refund(&open).await?;
            }
            Step::Release | Step::Renew => {
                if self.open.is_empty() {
                    return Ok(false);
                }
                let mut open = self.open.remove(0);
                if step == Step::Release {
                    let taken_at = open.held.at;
                    let release = Operation::Refund { taken_at };
                    self.follow(&open, open.held, release, Charge::is_hold)
                        .await?;
                    open.is_released = true;
                } else {
                    self.renew(&mut open).await?;
                }
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
                self.apply(1, operation, &charges).await?;
                if is_reset {
                    let [is_cut, is_own_cut] = self.cuts.map(|cuts| cuts[1]);
                    self.forget(|(_, client), server| {
                        let is_reached = match server {
                            Server::Shared => !is_cut,
                            Server::Own(instance) => instance == 1 && !is_own_cut,
                        };
                        is_reached && [0, COMMON].contains(&client)
                    });
                }
            }
            Step::Change => self.is_raised = !self.is_raised,
            Step::Pass => self.pass(self.shape.window() / 2).await,
            Step::Expire => self.pass(self.shape.window()).await,
            Step::Fault(fault) => return Ok(self.fault(fault).await),
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

    fn charges_of_holds(&self, client: usize, instance: usize) -> Vec<Charge<'a>> {
        let mut charges = self.charges(instance, client);
        charges.retain(Charge::is_hold);
        charges
    }

    async fn check(&mut self, instance: usize, client: usize) -> Result<(), String> {
        let charges = self.charges(instance, client);
        let taken = self.take_units(instance, client, Operation::Check, &charges);
        if let Some((decision, taken)) = taken.await?
            && decision.is_allowed()
        {
            let charges = charges.iter().zip(decision.statuses());
            let charges = charges
                .map(|(charge, status)| charge.cost(status.taken).turn(status.reset_after()));
            self.open.push(Open {
                instance,
                charges: charges.collect(),
                taken,
                held: taken,
                is_released: false,
            });
        }
        self.world.pass(self.pairs.pace).await;
        Ok(())
    }

    async fn refund(&mut self, open: &Open<'a>) -> Result<(), String> {
        let refund = |taken_at| Operation::Refund { taken_at };
        if open.held == open.taken {
            return self
                .follow(open, open.taken, refund(open.taken.at), |_| true)
                .await
                .map(drop);
        }
        self.follow(open, open.taken, refund(open.taken.at), |charge| {
            !charge.is_hold()
        })
        .await?;
        self.follow(open, open.held, refund(open.held.at), Charge::is_hold)
            .await?;
        Ok(())
    }

    /// Renews the holds of a request. If the store has lost the holds, takes the holds again.
    async fn renew(&mut self, open: &mut Open<'a>) -> Result<(), String> {
        let taken_at = open.held.at;
        let renewal = Operation::Renew { taken_at };
        let Some(decision) = self
            .follow(open, open.held, renewal, Charge::is_hold)
            .await?
        else {
            return Ok(());
        };
        let is_lost = decision.statuses().iter().all(|status| status.taken == 0);
        if open.is_released || !is_lost {
            return Ok(());
        }
        let charges = open.charges.iter().filter(|charge| charge.is_hold());
        let charges = charges.map(|charge| charge.in_mode(ChargeMode::Forced));
        let charges: Vec<Charge<'_>> = charges.collect();
        // The answer to the first call is lost, and the second call takes no more units.
        self.apply(open.instance, renewal, &charges).await?;
        if let Some((_, held)) = self
            .take_units(open.instance, open.taken.client, renewal, &charges)
            .await?
        {
            open.held = held;
        }
        Ok(())
    }

    /// Applies an operation to some of the units of an admitted request.
    async fn follow(
        &mut self,
        open: &Open<'a>,
        taken: Taken,
        operation: Operation,
        is_part: impl Fn(&Charge<'a>) -> bool,
    ) -> Result<Option<Decision>, String> {
        let charges = open.charges.iter().copied().filter(is_part);
        let charges: Vec<Charge<'_>> = charges.collect();
        if charges.is_empty() {
            return Ok(None);
        }
        let at = self.world.now();
        let decision = self.apply(open.instance, operation, &charges).await?;
        let has_hold = charges.iter().any(Charge::is_hold);
        self.has_stray_hold |= decision.is_none() && has_hold;
        if let Some(decision) = &decision {
            self.ledger
                .record(self.shape, taken, operation, &charges, decision, at);
        }
        Ok(decision)
    }

    /// Applies an operation that takes units, and records the units.
    async fn take_units(
        &mut self,
        instance: usize,
        client: usize,
        operation: Operation,
        charges: &[Charge<'a>],
    ) -> Result<Option<(Decision, Taken)>, String> {
        self.admissions += 1;
        let now = self.world.now();
        let Some(decision) = self.apply(instance, operation, charges).await? else {
            return Ok(None);
        };
        let at = match operation {
            Operation::Renew { taken_at } => taken_at.taken_again_at(decision.at()),
            _ => decision.at(),
        };
        let holds = charges.iter().filter(|charge| charge.is_hold());
        // A refund of more units than the hold has is a refund of the hold.
        let holds: Vec<Charge<'_>> = holds.map(|charge| charge.cost(MANY)).collect();
        if !holds.is_empty() {
            self.holds.push((at, holds));
        }
        let taken = Taken {
            admission: self.admissions,
            client,
            at,
            server: self.world.server_of(instance, at),
        };
        self.ledger
            .record(self.shape, taken, operation, charges, &decision, now);
        Ok(Some((decision, taken)))
    }

    /// Makes a fault happen. Returns whether no other fault has the same effect.
    async fn fault(&mut self, fault: Fault) -> bool {
        // A second cut joins the network again.
        let fault = match fault {
            Fault::Cut(instance) if self.cuts[0][instance] => Fault::Join(instance),
            Fault::CutOwn(instance) if self.cuts[1][instance] => Fault::JoinOwn(instance),
            fault => fault,
        };
        match fault {
            Fault::Cut(instance) | Fault::Join(instance) => self.cuts[0][instance] ^= true,
            Fault::CutOwn(instance) | Fault::JoinOwn(instance) => self.cuts[1][instance] ^= true,
            _ => {}
        }
        let effect = self.world.fault(fault, self.keys).await;
        match effect {
            Effect::Kept => {}
            Effect::Lost(lost) => {
                self.model = Model::default();
                self.forget(|_, server| server == lost);
            }
            Effect::LostHolds => {
                let limits = &self.shape.limits;
                self.forget(|(limit, _), _| limits[limit].is_hold());
                let now = self.world.now();
                for (taken_at, holds) in core::mem::take(&mut self.holds) {
                    self.model
                        .apply(Operation::Refund { taken_at }, &holds, now);
                }
                // The model keeps a refunded hold for a microsecond.
                self.world.pass(Duration::from_millis(1)).await;
            }
        }
        if let Fault::Restart(instance) = fault {
            // Two instances that lose a store in memory are one process. A process that has ended settles no request.
            let has_ended = |other| other == instance || effect == Effect::Lost(Server::Shared);
            let before = self.open.len();
            self.open.retain(|open| !has_ended(open.instance));
            self.has_stray_hold |= self.open.len() < before;
            for instance in (0..2).filter(|instance| has_ended(*instance)) {
                self.instances[instance] = self.world.open(instance).await;
            }
        }
        // One process restarts once.
        !(fault == Fault::Restart(1) && effect == Effect::Lost(Server::Shared))
    }

    /// Forgets the units that a server has lost.
    fn forget(&mut self, is_lost: impl Fn((usize, usize), Server) -> bool) {
        self.ledger.forget(&is_lost);
        if self.promise == Promise::Exact {
            return;
        }
        let shape = self.shape;
        for open in &mut self.open {
            let (client, server) = (open.taken.client, open.taken.server);
            // A refund after a loss may reach later units. A hold has an instant of its own.
            open.charges.retain(|charge| {
                charge.is_hold() || !is_lost(shape.counter_of(charge, client), server)
            });
        }
        self.open.retain(|open| !open.charges.is_empty());
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
        if self.cuts.iter().any(|cuts| cuts[instance]) {
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
