//! Looks at and changes the counters of single clients.

use core::time::Duration;

use tower_quota_core::{
    Algorithm, Charge, Decision, Key, LimitStatus, Limiter, Name, Operation, Quota, RefusalCache,
    Store,
};

use super::{ClientKey, HandleError, RateLimitHandle};
use crate::head::RequestHead;
use crate::limit::{Limit, Over};
use crate::policy::{Charges, Explained, Plan, RequestCharges};
use crate::settle::within;

impl<S: Store> RateLimitHandle<S> {
    /// Returns the key by which a limit counts a client.
    pub fn key<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Key<'static>, HandleError<S::Error>> {
        self.client(limit, client.into()).map(|(_, key)| key)
    }

    /// Returns the present quota of a client, as [`peek`](Self::peek) counts the client.
    pub fn quota<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Quota, HandleError<S::Error>> {
        let (rules, client) = (self.shared.rules(), client.into());
        find(&rules.plan, limit, client).map(|found| found.quota)
    }

    /// Checks that a limit can count a client by another quota. Returns the scope of the limit's keys.
    ///
    /// # Errors
    /// Returns [`HandleError::InvalidQuota`] if a policy would reject the limit with the quota, or
    /// if the quota turns a concurrency limit into another kind of limit.
    pub fn check_quota(&self, limit: &str, quota: Quota) -> Result<Name, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let limit = named(&rules.plan, limit)?;
        let checked = limit.check_with(quota, rules.plan.instances);
        checked.map_err(|error| HandleError::InvalidQuota(limit.name, error))?;
        Ok(limit.extractor.scope())
    }

    /// Returns what a limit does to requests over the quota.
    pub fn over(&self, limit: &str) -> Result<Over, HandleError<S::Error>> {
        named(&self.shared.rules().plan, limit).map(|limit| limit.over)
    }

    /// Returns a limiter on the counters of a limit, to charge units while a request runs.
    ///
    /// Use the limiter for messages of a stream or websocket, with the [key](Self::key) of the client. The limiter
    /// ignores blocks, later policies, and quotas [by request](Limit::quota_with) or [key](Limit::quota_of_key).
    ///
    /// ```
    /// use http::request::Parts;
    /// use tower_quota::{MemoryStore, RateLimitHandle};
    ///
    /// async fn send_rows(
    ///     limits: RateLimitHandle<MemoryStore>,
    ///     request: Parts,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     let (rows, client) = (limits.limiter("rows")?, limits.key("rows", &request)?);
    ///     while rows.check(&client).await?.is_allowed() {
    ///         // Send the next row.
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// Concurrency limits fail with [`HandleError::HeldUnits`]. Keep a clone of the
    /// [`Reservation`](crate::settle::Reservation) instead.
    pub fn limiter(&self, limit: &str) -> Result<Limiter<RefusalCache<S>>, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let limit = named(&rules.plan, limit)?;
        if limit.is_hold() {
            return Err(HandleError::HeldUnits(limit.name));
        }
        let store = self.shared.store.clone();
        let longest_wait = limit.longest_wait.unwrap_or(Limit::DEFAULT_MAX_WAIT);
        // The policy has checked the name.
        Ok(Limiter::new(store, limit.name, limit.quota)
            .scope(limit.extractor.scope())
            .max_wait(longest_wait))
    }

    /// Explains the treatment of a request, without counting or calling the store.
    #[must_use]
    pub fn explain(&self, head: &RequestHead<'_>) -> Explained {
        self.shared.rules().plan.explain(head)
    }

    /// Returns the status of a client for a request of one unit, without charging the unit.
    ///
    /// A client named by a request has the quota of the request, otherwise the quota [of the key](Limit::quota_of_key)
    /// or the limit. For blocks, call [`blocked_for`](Self::blocked_for).
    pub async fn peek<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        self.apply(Operation::Peek, limit, client.into(), 1).await
    }

    /// Returns the decision that a request would get now, by all of its limits and costs, without charging units.
    ///
    /// Returns `None` if no limit decides, because of the lists of the policy, or because the request has no limit or lacks
    /// a key. Call [`explain`](Self::explain) for the reason, and [`blocked_for`](Self::blocked_for) for blocks.
    ///
    /// ```
    /// use http::Request;
    /// use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer, RequestHead};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let policy = Policy::new().limit(Limit::new("minute", Quota::per_minute(9)).cost(5));
    /// let handle = RateLimitLayer::new(MemoryStore::new(), policy).handle();
    /// let request = Request::get("/").body(()).unwrap();
    /// let decision = handle.peek_request(&RequestHead::of(&request)).await.unwrap().unwrap();
    /// assert!(decision.is_allowed());
    /// # });
    /// ```
    pub async fn peek_request(
        &self,
        head: &RequestHead<'_>,
    ) -> Result<Option<Decision>, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let mut asked = RequestCharges::new(&rules.plan);
        if rules.plan.lists.find(head).is_none() {
            asked.read(head);
        }
        if asked.is_empty() || asked.refusal.is_some() {
            return Ok(None);
        }
        let mut charges = Charges::new();
        asked.fill(&mut charges, |waiter| self.shared.queue.has_room(waiter));
        let peeked = self.shared.store.apply(Operation::Peek, &charges);
        drop(charges);
        let decision = within(self.shared.store_timeout(), peeked).await?;
        Ok(Some(decision))
    }

    /// Returns the time until the window of a client ends, by the clock of the store.
    ///
    /// Show it to clients next to the status of [`peek`](Self::peek), for example as the end of their month. Unlike
    /// [`LimitStatus::reset_after`], it is the same for clients who have used nothing. See [`Quota::window_ends`] for the
    /// limits without an end, which return `None`.
    pub async fn until_window_ends<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<Option<Duration>, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let Found { limit, key, quota } = find(&rules.plan, limit, client.into())?;
        let charge = plain(limit, &quota, &key);
        let peeked = self.shared.store.apply(Operation::Peek, &[charge]);
        let peeked = within(self.shared.store_timeout(), peeked).await?;
        let now = peeked.at().unmarked();
        Ok(quota.window_ends(now).map(|end| end.since(now)))
    }

    /// Deletes the counter, the penalty and the [block](Self::block) of a client of a limit.
    pub async fn reset<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let client = client.into();
        self.unblock(limit, client)?;
        self.apply(Operation::Reset, limit, client, 1).await
    }

    /// Gives used units back to a client, up to a full limit. Returns the new status.
    ///
    /// [`LimitStatus::taken`] is the number of units that the client really got. To admit more than the quota, give the
    /// client another quota by [`Policy::overrides`](crate::Policy::overrides).
    ///
    /// A sliding window takes back only units of the present window.
    ///
    /// # Errors
    /// Sliding logs and concurrency limits fail with [`HandleError::NotGranted`].
    pub async fn grant<'k>(
        &self,
        limit: &str,
        client: impl Into<ClientKey<'k>>,
        units: u64,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let client = client.into();
        let rules = self.shared.rules();
        let Found { limit, key, quota } = find(&rules.plan, limit, client)?;
        if matches!(
            quota.algorithm(),
            Algorithm::SlidingLog | Algorithm::Concurrent
        ) {
            return Err(HandleError::NotGranted(limit.name));
        }
        // A refusal provides the store's time and a counter under this quota, and counts 0 units.
        let refused = plain(limit, &quota, &key);
        let refused = self.shared.store.apply(Operation::Refuse, &[refused]);
        let refused = within(self.shared.store_timeout(), refused).await?;
        let refund = Operation::Refund {
            taken_at: refused.at(),
        };
        self.status(refund, limit, limit.charge(&quota, &key, units))
            .await
    }

    pub(super) fn client(
        &self,
        limit: &str,
        client: ClientKey<'_>,
    ) -> Result<(Name, Key<'static>), HandleError<S::Error>> {
        let rules = self.shared.rules();
        let limit = named(&rules.plan, limit)?;
        Ok((limit.name, key_of(limit, client)?))
    }

    async fn apply(
        &self,
        operation: Operation,
        limit: &str,
        client: ClientKey<'_>,
        units: u64,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let rules = self.shared.rules();
        let Found { limit, key, quota } = find(&rules.plan, limit, client)?;
        self.status(operation, limit, limit.charge(&quota, &key, units))
            .await
    }

    async fn status(
        &self,
        operation: Operation,
        limit: &Limit,
        charge: Charge<'_>,
    ) -> Result<LimitStatus, HandleError<S::Error>> {
        let applied = self.shared.store.apply(operation, &[charge]);
        let decision = within(self.shared.store_timeout(), applied).await?;
        let mut status = *decision.statuses().first().ok_or(HandleError::NoStatus)?;
        // The store counts a limit that flags requests like a shadow.
        status.is_shadow = limit.is_dry_run();
        Ok(status)
    }
}

struct Found<'r> {
    limit: &'r Limit,
    key: Key<'static>,
    quota: Quota,
}

fn find<'r, E>(
    plan: &'r Plan,
    limit: &str,
    client: ClientKey<'_>,
) -> Result<Found<'r>, HandleError<E>> {
    let limit = named(plan, limit)?;
    let key = key_of(limit, client)?;
    let quota = match client {
        ClientKey::Request(head) => {
            let mut asked = RequestCharges::new(plan);
            asked.read(&head);
            *asked.quota(limit)
        }
        _ => plan.quota_by_key(limit, &key),
    };
    Ok(Found { limit, key, quota })
}

fn key_of<E>(limit: &Limit, client: ClientKey<'_>) -> Result<Key<'static>, HandleError<E>> {
    client
        .read_by(&*limit.extractor)
        .ok_or(HandleError::UnreadableKey(limit.name))
}

fn named<'r, E>(plan: &'r Plan, name: &str) -> Result<&'r Limit, HandleError<E>> {
    plan.limit_named(name)
        .ok_or_else(|| HandleError::UnknownLimit {
            name: name.to_owned(),
            known: plan.limits().map(|limit| limit.name).collect(),
        })
}

/// Returns a charge of one unit without the options of the limit. A leasing store counts by the limit's own quota only
/// charges that it never leases.
fn plain<'a>(limit: &Limit, quota: &'a Quota, key: &'a Key<'a>) -> Charge<'a> {
    let (charge, plain) = (
        limit.charge(quota, key, 1),
        Charge::new(limit.name, quota, key),
    );
    let is_exact = charge.is_exact() || charge.counts_refusals() || charge.penalised_by().is_some();
    if is_exact { plain.exact() } else { plain }
}
