//! Ends a run, and compares with untouched clients.

use std::time::Duration;

use tower_quota_core::Operation;

use super::Run;
use crate::model::is_same;
use crate::pairs::world::{Fault, World};

impl<W: World> Run<'_, W> {
    /// Ends all faults and requests, waits, and compares with untouched clients.
    pub(super) async fn conclude(&mut self) -> Result<(), String> {
        for instance in 0..2 {
            if core::mem::take(&mut self.is_cut[instance]) {
                self.fault(Fault::Join(instance)).await;
            }
        }
        while let Some(open) = self.open.pop() {
            let taken_at = open.decision.at();
            self.follow(&open, Operation::Refund { taken_at }, false)
                .await?;
        }
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
}
