//! Plays the steps of a case, and compares the results.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Number, Value};
use tower_quota_core::{Decision, Operation as StoreOperation, Outcome, Quota, Store};

use super::case::{Case, Operation, Step};
use super::case_client::{CaseClient, remaining, reset_after};
use super::models::{self, Setup};
use super::{Column, TestStore};

/// Plays a case on all setups of the case. All columns except `but` must agree.
pub(crate) async fn play<S: Store>(
    test_store: &TestStore<S>,
    case: &Case,
    but: &[Column],
) -> Result<(), String> {
    for (number, setup) in models::setups(case)?.into_iter().enumerate() {
        let name = format!("{} {number} {but:?}", case.id);
        let limits = &setup.limits;
        let mut player = Player::new(test_store, &name, &setup, but).await;
        for (position, step) in case.steps.iter().enumerate() {
            let step =
                Step::deserialize(step).map_err(|error| format!("step {position}: {error}"))?;
            let played = match step {
                Step::Request(columns) => player.request(&columns).await,
                Step::Operation(operation) => player.operation(*operation).await,
            };
            played.map_err(|difference| format!("step {position} of {limits:?}: {difference}"))?;
        }
    }
    Ok(())
}

struct Player<'a, S> {
    test_store: &'a TestStore<S>,
    client: CaseClient<'a, S>,
    setup: &'a Setup,
    but: &'a [Column],
    /// The decisions and units of reservations that a later step can cancel.
    reserved: HashMap<String, (Decision, u64)>,
}

impl<'a, S: Store> Player<'a, S> {
    async fn new(
        test_store: &'a TestStore<S>,
        name: &str,
        setup: &'a Setup,
        but: &'a [Column],
    ) -> Self {
        let client = CaseClient::new(&test_store.store, &test_store.clock, name, &setup.limits);
        for &(t, limit, units) in &setup.taken {
            client.at(Duration::from_micros(t * setup.scale));
            client.charge(limit, units).await;
        }
        Self {
            test_store,
            client,
            setup,
            but,
            reserved: HashMap::new(),
        }
    }

    async fn request(&self, columns: &[Value]) -> Result<(), String> {
        let column = |position: usize| columns.get(position).unwrap_or(&Value::Null);
        self.at(column(0).as_u64().ok_or("a request without a time")?);
        let decision = match (column(1).as_u64(), column(1).as_i64()) {
            (Some(cost), _) => self.client.check(cost).await,
            (_, Some(back)) => self.refund(back.unsigned_abs()).await,
            _ => return Err("a request without a cost".to_owned()),
        };
        self.same(
            Column::Allowed,
            Some(decision.is_allowed()),
            column(2).as_bool(),
        )?;
        self.same(
            Column::Remaining,
            Some(remaining(&decision)),
            column(3).as_u64(),
        )?;
        self.same_retry(decision.outcome(), column(4))?;
        let expected = column(5).as_u64().map(|reset| self.span(reset));
        self.same(Column::ResetAfter, Some(reset_after(&decision)), expected)?;
        let next = column(6)
            .get("next")
            .and_then(Value::as_u64)
            .map(|next| self.span(next));
        if next.is_some() {
            // If no unit remains, a check of one unit charges nothing.
            let left = remaining(&decision);
            let wait = if left > 0 {
                Some(Duration::ZERO)
            } else {
                self.client.check(1).await.retry_after()
            };
            self.same(Column::RetryAfter, wait, next)?;
        }
        Ok(())
    }

    async fn operation(&mut self, operation: Operation) -> Result<(), String> {
        self.at(operation.t);
        let (n, expect) = (operation.n, &operation.expect);
        let mode = operation.mode.as_deref().unwrap_or_default();
        let unplayable = || format!("there is no {} {mode} here", operation.op);
        match operation.op.as_str() {
            "avail" => self.same_left(&self.client.peek().await, expect.rem),
            "peek" => {
                let mut decision = self.client.check(n).await;
                self.same(Column::Allowed, Some(decision.is_allowed()), expect.ok)?;
                self.same(
                    Column::RetryAfter,
                    decision.retry_after(),
                    expect.retry.map(|retry| self.span(retry)),
                )?;
                if let Some(refund) = decision.refund() {
                    self.client.apply(refund, n).await;
                }
                Ok(())
            }
            "drain" => {
                let (got, _) = self.client.drain(operation.max.unwrap_or(u64::MAX)).await;
                self.same(Column::Remaining, Some(got), expect.got)
            }
            "add" | "force_add" => self.same_left(&self.refund(n).await, expect.rem),
            "force" => {
                let decision = self.client.apply(StoreOperation::Charge, n).await;
                self.same_left(&decision, expect.rem)?;
                let empty = self
                    .setup
                    .limits
                    .iter()
                    .map(Quota::window)
                    .max()
                    .unwrap_or_default();
                let wait = reset_after(&decision).saturating_sub(empty);
                self.same(
                    Column::RetryAfter,
                    Some(wait),
                    expect.wait.map(|wait| self.span(wait)),
                )
            }
            "full_in" => {
                let decision = self.client.peek().await;
                self.same(
                    Column::ResetAfter,
                    Some(reset_after(&decision)),
                    expect.wait.map(|wait| self.span(wait)),
                )
            }
            "clear" => {
                self.client.apply(StoreOperation::Reset, 1).await;
                Ok(())
            }
            "estimate" => self.estimate(operation.t, expect.value.as_ref()).await,
            "reserve" => {
                let decision = self.client.check_with_max_wait(n, Duration::MAX).await;
                self.same(Column::Allowed, Some(decision.is_allowed()), expect.ok)?;
                let act = self.span(operation.t) + decision.wait();
                self.same(
                    Column::RetryAfter,
                    Some(act),
                    expect.act.map(|act| self.span(act)),
                )?;
                self.reserved
                    .insert(operation.id.unwrap_or_default(), (decision, n));
                Ok(())
            }
            "cancel" => {
                let (mut decision, units) = self
                    .reserved
                    .remove(&operation.id.unwrap_or_default())
                    .ok_or("nothing to cancel")?;
                let refund = decision.refund().ok_or("nothing to give back")?;
                self.client.apply(refund, units).await;
                Ok(())
            }
            "set_rate" => {
                let rate = operation.rate_per_s.ok_or_else(unplayable)?;
                for quota in &mut self.client.limits {
                    *quota = Quota::per_second(rate)
                        .burst(quota.capacity())
                        .try_algorithm(quota.algorithm())
                        .unwrap();
                }
                Ok(())
            }
            "take" => {
                for quota in &mut self.client.limits {
                    let limit = operation.limit.ok_or_else(unplayable)?;
                    *quota = Quota::new(limit, quota.period())
                        .fixed_window()
                        .from_first_request();
                }
                self.same_left(&self.client.check(n).await, expect.rem)
            }
            "replace" if mode == "as_is" => {
                let limits = operation.limits.as_deref().ok_or_else(unplayable)?;
                let quotas = limits
                    .iter()
                    .map(|limit| models::quota(limit, self.setup.scale, operation.t));
                self.client.limits = quotas.collect::<Result<_, _>>()?;
                // A new quota applies from the first charge, so charge a unit and refund the unit.
                self.client.apply(StoreOperation::Charge, 1).await;
                self.same_left(&self.refund(1).await, expect.rem)
            }
            _ => Err(unplayable()),
        }
    }

    /// Compares an estimate. Multiplies all units until the estimate is an integer.
    async fn estimate(&self, t: u64, value: Option<&Number>) -> Result<(), String> {
        let digits = value
            .map(Number::to_string)
            .ok_or("an estimate without a value")?;
        let fraction = digits.split_once('.').map_or("", |(_, fraction)| fraction);
        let times = 10_u64.pow(u32::try_from(fraction.len()).unwrap());
        let setup = self.setup.with_multiplied_units(times);
        let larger = Box::pin(Player::new(
            self.test_store,
            &format!("estimate of {digits} at {t}"),
            &setup,
            self.but,
        ))
        .await;
        larger.at(t);
        let left = remaining(&larger.client.peek().await);
        let expected: u64 = digits.replace('.', "").parse().unwrap();
        self.same(
            Column::Remaining,
            Some(setup.limits[0].capacity() - left),
            Some(expected),
        )
    }

    async fn refund(&self, units: u64) -> Decision {
        let taken_at = self.client.peek().await.at();
        self.client
            .apply(StoreOperation::Refund { taken_at }, units)
            .await
    }

    fn at(&self, t: u64) {
        self.client.at(self.span(t));
    }

    fn span(&self, units: u64) -> Duration {
        Duration::from_micros(units * self.setup.scale)
    }

    /// Compares the remaining units. Computes a debt from the time until the counter is full.
    fn same_left(&self, decision: &Decision, expected: Option<i64>) -> Result<(), String> {
        let left = match expected {
            Some(..0) => {
                let quota = &self.client.limits[0];
                let used = reset_after(decision).as_micros() * u128::from(quota.units());
                let used = used.div_ceil(quota.period().as_micros());
                i64::try_from(quota.capacity()).unwrap() - i64::try_from(used).unwrap()
            }
            _ => remaining(decision).try_into().unwrap(),
        };
        self.same(Column::Remaining, Some(left), expected)
    }

    fn same_retry(&self, outcome: Outcome, expected: &Value) -> Result<(), String> {
        let expected = match expected {
            Value::Null => return Ok(()),
            Value::String(never) if never == "never" => Outcome::Never,
            Value::Number(number) => match number.as_i64() {
                // -1 means "not applicable" or "never". The decision shows which meaning applies.
                Some(-1) if outcome == Outcome::Never => Outcome::Never,
                Some(-1 | 0) => Outcome::Allow,
                _ => Outcome::Refuse(self.span(number.as_u64().ok_or("a retry that is no time")?)),
            },
            other => return Err(format!("a retry that is {other}")),
        };
        self.same(Column::RetryAfter, Some(outcome), Some(expected))
    }

    fn same<T: PartialEq + Debug>(
        &self,
        column: Column,
        found: Option<T>,
        expected: Option<T>,
    ) -> Result<(), String> {
        if expected.is_none() || found == expected || self.but.contains(&column) {
            return Ok(());
        }
        Err(format!("{column:?} is {found:?}, expected {expected:?}"))
    }
}
