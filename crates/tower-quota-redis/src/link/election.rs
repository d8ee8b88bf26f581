//! Chooses the primary among the addresses that sentinels name.
//!
//! 1. Every address that is named is connected to at once, and a server that reports to be a replica is skipped.
//! 2. An address that more than half of the sentinels name is taken as soon as there is a connection. So a sentinel
//!    that is down or silent costs nothing, and one that is cut off from the others is outvoted.
//! 3. Just after a failover most sentinels still name the old primary. If that is down, or stays silent for a moment,
//!    the address that fewer name is taken.

use core::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult};
use tokio::task::JoinSet;

/// The time that the server with most votes has to answer once another has answered.
const MAJORITY_GRACE: Duration = Duration::from_millis(50);

pub(super) type Address = (String, u16);

/// The report of a task to the election.
pub(super) enum Report<C> {
    /// A sentinel's answer.
    Named(RedisResult<Address>),
    /// The outcome of connecting to a server that was named.
    Connected(Address, RedisResult<C>),
}

struct Candidate<C> {
    address: Address,
    votes: usize,
    /// `None` until it has answered.
    connection: Option<C>,
    is_out: bool,
}

/// Collects reports until it is clear where the primary is. `reports` has a task for each sentinel.
pub(super) async fn elect<C: Send + 'static, F>(
    mut reports: JoinSet<Report<C>>,
    connect: impl Fn(Address) -> F,
) -> RedisResult<C>
where
    F: Future<Output = Report<C>> + Send + 'static,
{
    let sentinels = reports.len();
    let mut silent = sentinels;
    let mut candidates: Vec<Candidate<C>> = Vec::new();
    let mut last = RedisError::from((
        ErrorKind::MasterNameNotFoundBySentinel,
        "no sentinel knows a primary that is there",
    ));
    loop {
        let is_there = candidates
            .iter()
            .any(|candidate| candidate.connection.is_some());
        let next = if silent == 0 && is_there {
            // The sentinels differ, and the server with more votes has not answered yet.
            tokio::time::timeout(MAJORITY_GRACE, reports.join_next())
                .await
                .unwrap_or_default()
        } else {
            reports.join_next().await
        };
        match next {
            Some(Ok(Report::Named(answer))) => {
                silent -= 1;
                match answer {
                    Ok(address) => match candidates
                        .iter_mut()
                        .find(|candidate| candidate.address == address)
                    {
                        Some(known) => known.votes += 1,
                        None => {
                            reports.spawn(connect(address.clone()));
                            candidates.push(Candidate {
                                address,
                                votes: 1,
                                connection: None,
                                is_out: false,
                            });
                        }
                    },
                    Err(error) => last = error,
                }
            }
            Some(Ok(Report::Connected(address, outcome))) => {
                if let Some(candidate) = candidates
                    .iter_mut()
                    .find(|candidate| candidate.address == address)
                {
                    match outcome {
                        Ok(connection) => candidate.connection = Some(connection),
                        Err(error) => {
                            candidate.is_out = true;
                            last = error;
                        }
                    }
                }
            }
            // The task was stopped, with its runtime.
            Some(Err(_)) => {}
            None => {
                // Nothing more is expected in time: take the best candidate that answered.
                candidates.sort_by_key(|candidate| candidate.votes);
                return candidates
                    .into_iter()
                    .rev()
                    .find_map(|candidate| candidate.connection)
                    .ok_or(last);
            }
        }
        if let Some(chosen) = chosen(&candidates, sentinels, silent == 0)
            && let Some(connection) = candidates.swap_remove(chosen).connection
        {
            return Ok(connection);
        }
    }
}

/// Returns the candidate that no further report can change.
fn chosen<C>(
    candidates: &[Candidate<C>],
    sentinels: usize,
    have_all_answered: bool,
) -> Option<usize> {
    let in_question = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| !candidate.is_out);
    let (best, candidate) = in_question.max_by_key(|(_, candidate)| candidate.votes)?;
    let is_settled = have_all_answered || candidate.votes * 2 > sentinels;
    (candidate.connection.is_some() && is_settled).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::pending;

    fn address(port: u16) -> Address {
        ("redis".to_owned(), port)
    }

    /// Makes sentinels that name these ports, or stay silent.
    fn sentinels(ports: &[Option<u16>]) -> JoinSet<Report<u16>> {
        let mut reports = JoinSet::new();
        for port in ports.iter().copied() {
            reports.spawn(async move {
                match port {
                    Some(port) => Report::Named(Ok(address(port))),
                    None => pending().await,
                }
            });
        }
        reports
    }

    /// Finds a primary on each even port, nothing on port 1, and silence on the other odd ports.
    async fn connect(address: Address) -> Report<u16> {
        let outcome = match address.1 {
            1 => Err((ErrorKind::Io, "refused").into()),
            odd if odd % 2 == 1 => pending().await,
            port => Ok(port),
        };
        Report::Connected(address, outcome)
    }

    #[tokio::test]
    async fn silent_sentinel_does_not_delay_a_majority() {
        assert_eq!(
            elect(sentinels(&[Some(2), None, Some(2)]), connect)
                .await
                .unwrap(),
            2
        );
    }

    #[tokio::test]
    async fn isolated_sentinel_is_outvoted() {
        assert_eq!(
            elect(sentinels(&[Some(4), Some(2), Some(2)]), connect)
                .await
                .unwrap(),
            2
        );
        assert_eq!(
            elect(sentinels(&[Some(2), Some(2), Some(4)]), connect)
                .await
                .unwrap(),
            2
        );
    }

    #[tokio::test]
    async fn minority_is_followed_without_old_primary() {
        for down in [1, 3] {
            assert_eq!(
                elect(sentinels(&[Some(down), Some(down), Some(2)]), connect)
                    .await
                    .unwrap(),
                2,
                "{down}"
            );
        }
    }

    #[tokio::test]
    async fn missing_primary_is_an_error() {
        assert!(
            elect(sentinels(&[Some(1), Some(1)]), connect)
                .await
                .is_err()
        );
        assert!(elect(sentinels(&[]), connect).await.is_err());
    }
}
