//! Ends a run, and compares with untouched clients.

use std::time::Duration;

use tower_quota_core::{Decision, LimitStatus, Operation};

use super::Run;
use crate::model::is_same;
use crate::pairs::Promise;
use crate::pairs::shape::Limit;
use crate::pairs::world::{Fault, World};

impl<W: World> Run<'_, W> {
    /// Ends all faults and requests, waits, and compares with untouched clients.
    pub(super) async fn conclude(&mut self) -> Result<(), String> {
        for instance in 0..2 {
            if self.cuts[0][instance] {
                self.fault(Fault::Join(instance)).await;
            }
            if self.cuts[1][instance] {
                self.fault(Fault::JoinOwn(instance)).await;
            }
        }
        while let Some(open) = self.open.pop() {
            self.refund(&open).await?;
        }
        self.nothing_is_held().await?;
        let rest = match self.shape.window() {
            day if day >= Duration::from_secs(86_400) => day * 4,
            window => window * 100,
        };
        self.world.pass(rest).await;
        let visits = [
            (0, 0, Operation::Peek),
            (1, 1, Operation::Peek),
            (0, 1, Operation::Check),
            (1, 0, Operation::Check),
        ];
        for (instance, client, operation) in visits {
            let charges = self.charges(instance, client);
            let touched = self.apply(instance, operation, &charges).await?;
            let charges = self.charges(instance, client + 3);
            let untouched = self.apply(instance, operation, &charges).await?;
            let (Some(touched), Some(untouched)) = (touched, untouched) else {
                continue;
            };
            // Checks use units, and a wrapper may report a refusal with less detail. Peeks are compared whole.
            let is_same = touched.outcome() == untouched.outcome()
                && (operation == Operation::Check || is_same(&touched, &untouched, &[]));
            if !is_same {
                return Err(format!(
                    "after {rest:?}, client {client} in instance {instance} still differs from an untouched one\n\
                     {touched:#?}\n{untouched:#?}"
                ));
            }
        }
        Ok(())
    }

    /// Compares the holds with those of untouched clients, before any hold could expire.
    async fn nothing_is_held(&mut self) -> Result<(), String> {
        let mut limits = self.shape.limits.iter();
        let has_hold = limits.any(Limit::is_hold_without_strikes);
        if !has_hold || self.has_stray_hold {
            return Ok(());
        }
        // Holds may have instants some microseconds apart, and a cache may remember a refusal for a second.
        let pause = match self.promise {
            Promise::Exact => Duration::from_millis(1),
            _ => self.shape.window() / 4,
        };
        self.world.pass(pause).await;
        for (instance, client) in [(0, 0), (1, 1)] {
            let holds = self.charges_of_holds(client, instance);
            let touched = self.apply(instance, Operation::Peek, &holds).await?;
            let holds = self.charges_of_holds(client + 3, instance);
            let untouched = self.apply(instance, Operation::Peek, &holds).await?;
            let remaining = |decision: &Option<Decision>| -> Vec<u64> {
                let statuses = decision.iter().flat_map(Decision::statuses);
                statuses.map(LimitStatus::remaining).collect()
            };
            let is_answered = touched.is_some() && untouched.is_some();
            if is_answered && remaining(&touched) != remaining(&untouched) {
                return Err(format!(
                    "all holds are released, and client {client} differs from an untouched one\n\
                     {touched:#?}\n{untouched:#?}"
                ));
            }
        }
        Ok(())
    }
}
