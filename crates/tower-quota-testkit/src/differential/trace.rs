//! Runs a random trace on a store and in the model.

use futures_util::future::join_all;
use tower_quota_core::{Charge, Clock, Decision, Entry, Key, Operation, Store, Timestamp};

use super::Differential;
use super::plan::{KEYS, Step, TracePlan, keys};
use crate::clock::ManualClock;
use crate::conformance::Failure;
use crate::model::{Model, is_same};

/// A random trace of requests. Compare each trace on a store of its own.
#[derive(Debug)]
pub struct RandomTrace<'a> {
    plan: &'a TracePlan,
    clock: ManualClock,
    prefix: String,
    settings: Differential,
}

/// A store that runs a trace, and the model of the store.
struct Comparison<'a, S> {
    trace: &'a RandomTrace<'a>,
    store: &'a S,
    keys: [Key<'static>; KEYS],
    model: Model,
    past: Vec<Decision>,
    latest: Timestamp,
}

impl<'a> RandomTrace<'a> {
    pub(super) fn new(plan: &'a TracePlan, prefix: String, settings: Differential) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(plan.start));
        Self {
            plan,
            clock,
            prefix,
            settings,
        }
    }

    /// Returns the clock that your store must use.
    #[must_use]
    pub fn clock(&self) -> ManualClock {
        self.clock.clone()
    }

    /// Returns a prefix that no other trace has, for stores that share a database.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Runs the trace on an empty store, and compares every field of every decision with the model.
    ///
    /// # Errors
    /// [`Failure`] names the first step at which they differ.
    pub async fn compare<S: Store>(&self, store: &S) -> Result<(), Failure> {
        self.run(store, async |_: &Key<'_>| None).await
    }

    /// Works like [`compare`](Self::compare), and also compares the stored bytes.
    ///
    /// `stored` returns the bytes of a key, or an empty vector. The bytes must equal
    /// [`Entry::encode`](tower_quota_core::Entry::encode). An entry that is full again may be
    /// missing, unless you call [`Differential::forgets_nothing`].
    ///
    /// # Errors
    /// [`Failure`] names the first step at which they differ.
    pub async fn compare_bytes<S, F>(&self, store: &S, stored: F) -> Result<(), Failure>
    where
        S: Store,
        F: AsyncFn(&Key<'_>) -> Vec<u8>,
    {
        self.run(store, async |key: &Key<'_>| Some(stored(key).await))
            .await
    }

    async fn run<S, F>(&self, store: &S, stored: F) -> Result<(), Failure>
    where
        S: Store,
        F: AsyncFn(&Key<'_>) -> Option<Vec<u8>>,
    {
        let mut comparison = Comparison {
            trace: self,
            store,
            keys: keys(),
            model: Model::default(),
            past: Vec::new(),
            latest: self.clock.now(),
        };
        let mut rest = self.plan.steps.as_slice();
        while let [first, later @ ..] = rest {
            let joining = later
                .iter()
                .take_while(|step| self.settings.with_bursts && step.joins_last)
                .count();
            let burst;
            (burst, rest) = rest.split_at(1 + joining);
            comparison.pause(first);
            comparison.decide(burst).await?;
            comparison.compare_bytes(&stored).await?;
        }
        Ok(())
    }
}

impl<S: Store> Comparison<'_, S> {
    fn pause(&mut self, step: &Step) {
        let RandomTrace {
            plan,
            clock,
            settings,
            ..
        } = self.trace;
        let mut now =
            Timestamp::from_micros(plan.instant(step, clock.now().as_micros(), self.past.last()));
        if !settings.forgets_nothing {
            // Do not go back to an instant at which a full entry was not full, because the store
            // may have forgotten the entry.
            now = now.max(self.model.last_full_at(self.latest));
        }
        self.latest = self.latest.max(now);
        clock.set(now);
    }

    async fn decide(&mut self, burst: &[Step]) -> Result<(), Failure> {
        let RandomTrace {
            plan,
            clock,
            settings,
            ..
        } = self.trace;
        let now = clock.now();
        let requests: Vec<(Operation, Vec<Charge<'_>>)> = burst
            .iter()
            .map(|step| {
                let charges = plan.charges(step, &self.keys);
                (
                    step.operation(&self.past),
                    step.with_turns(charges, &self.past),
                )
            })
            .collect();
        let expected: Vec<_> = requests
            .iter()
            .map(|(operation, charges)| {
                let decision = self.model.apply(*operation, charges, now);
                (decision, self.model.entries_of(charges))
            })
            .collect();
        let decided = requests
            .iter()
            .map(|(operation, charges)| self.store.apply(*operation, charges));
        let found = join_all(decided).await;
        for (((expected, entries), (_, charges)), found) in
            expected.into_iter().zip(&requests).zip(found)
        {
            let step = format!("step {}", self.past.len());
            let found =
                found.map_err(|error| Failure::new(&step, format!("the store failed: {error}")))?;
            if !is_same(&found, &expected, settings.contents.lacks) {
                return Err(Failure::new(
                    &step,
                    format!("the model says\n{expected:#?}\nand the store\n{found:#?}"),
                ));
            }
            compare_entries(&found, &entries, charges)
                .map_err(|reason| Failure::new(&step, reason))?;
            self.past.push(found);
        }
        Ok(())
    }

    async fn compare_bytes(
        &mut self,
        stored: &impl AsyncFn(&Key<'_>) -> Option<Vec<u8>>,
    ) -> Result<(), Failure> {
        for key in &self.keys {
            let Some(found) = stored(key).await else {
                return Ok(());
            };
            let entry = self.model.stored_entry(key, &found);
            let may_be_gone =
                !self.trace.settings.forgets_nothing && entry.full_at() <= self.latest;
            let expected = entry.encode();
            if found != expected && !(found.is_empty() && may_be_gone) {
                let step = format!("after step {}", self.past.len().saturating_sub(1));
                let reason = format!(
                    "{key:?} is stored as\n{found:x?}\nand the model is\n{expected:x?}\n{entry:#?}"
                );
                return Err(Failure::new(&step, reason));
            }
        }
        Ok(())
    }
}

fn compare_entries(
    found: &Decision,
    entries: &[(usize, Entry)],
    charges: &[Charge<'_>],
) -> Result<(), String> {
    for (position, sent) in found.entries() {
        let is_own = |charge: &&Charge<'_>| charge.key() == charges[*position].key();
        let own: Vec<Charge<'_>> = charges.iter().filter(is_own).copied().collect();
        let peek = |mut entry: Entry| entry.decide(Operation::Peek, &own, found.at());
        let is_same = |known: &&(usize, Entry)| charges[known.0].key() == charges[*position].key();
        let model = entries.iter().find(is_same).map(|known| known.1.clone());
        let expected = peek(model.unwrap_or_default().abridged(found.at()));
        let given = peek(sent.clone());
        if given != expected {
            return Err(format!(
                "by the model the entry gives\n{expected:#?}\nand by the store\n{given:#?}"
            ));
        }
    }
    Ok(())
}
