//! Elects the primary among the addresses that sentinels name.
//!
//! 1. The store connects to each address at once, and skips replicas.
//! 2. The first connection to an address with more than half of the votes wins. A silent sentinel costs no time, and an
//!    isolated sentinel is outvoted.
//! 3. After a failover, most sentinels still name the old primary for a moment. If it is silent, the address with fewer
//!    votes wins.

use core::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult};
use tokio::task::JoinSet;

/// The head start of the server with the most votes.
const MAJORITY_GRACE: Duration = Duration::from_millis(50);

pub(super) type Address = (String, u16);

pub(super) enum Report<C> {
    Named(RedisResult<Address>),
    Connected(Address, RedisResult<C>),
}

struct Candidate<C> {
    address: Address,
    votes: usize,
    connection: Option<C>,
}

/// Elects a primary. `reports` has a task for each sentinel.
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
        let is_connected = |candidate: &Candidate<C>| candidate.connection.is_some();
        let next = if silent == 0 && candidates.iter().any(is_connected) {
            // Wait a little for a server with more votes.
            tokio::time::timeout(MAJORITY_GRACE, reports.join_next())
                .await
                .unwrap_or_default()
        } else {
            reports.join_next().await
        };
        match next {
            Some(Ok(Report::Named(Ok(address)))) => {
                silent -= 1;
                match find(&mut candidates, &address) {
                    Some(known) => known.votes += 1,
                    None => {
                        reports.spawn(connect(address.clone()));
                        candidates.push(Candidate {
                            address,
                            votes: 1,
                            connection: None,
                        });
                    }
                }
            }
            Some(Ok(Report::Named(Err(error)))) => {
                silent -= 1;
                last = error;
            }
            Some(Ok(Report::Connected(address, Ok(connection)))) => {
                if let Some(candidate) = find(&mut candidates, &address) {
                    candidate.connection = Some(connection);
                }
            }
            // The store tries again if another sentinel names the server later.
            Some(Ok(Report::Connected(address, Err(error)))) => {
                candidates.retain(|candidate| candidate.address != address);
                last = error;
            }
            // The task was stopped with its runtime.
            Some(Err(_)) => {}
            // No more reports arrive in time. The best candidate that answered wins.
            None => {
                let mut best_first = candidates.into_iter().rev();
                return best_first
                    .find_map(|candidate| candidate.connection)
                    .ok_or(last);
            }
        }
        candidates.sort_by_key(|candidate| candidate.votes);
        let settled = candidates
            .pop_if(|best| is_connected(best) && (silent == 0 || best.votes * 2 > sentinels));
        if let Some(connection) = settled.and_then(|best| best.connection) {
            return Ok(connection);
        }
    }
}

fn find<'a, C>(
    candidates: &'a mut [Candidate<C>],
    address: &Address,
) -> Option<&'a mut Candidate<C>> {
    candidates
        .iter_mut()
        .find(|candidate| candidate.address == *address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::pending;

    fn address(port: u16) -> Address {
        ("redis".to_owned(), port)
    }

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

    /// Finds a primary on each even port, an error on port 1, and silence on the other ports.
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
    async fn failed_server_is_tried_when_named_again() {
        let mut reports = JoinSet::new();
        let (failed, has_failed) = tokio::sync::oneshot::channel();
        let failed = std::sync::Mutex::new(Some(failed));
        reports.spawn(async { Report::Named(Ok(address(2))) });
        reports.spawn(async {
            has_failed.await.unwrap();
            Report::Named(Ok(address(2)))
        });
        let elected = elect(reports, |address| {
            let first = failed.lock().unwrap().take();
            async move {
                match first {
                    Some(failed) => {
                        failed.send(()).unwrap();
                        Report::Connected(address, Err((ErrorKind::Io, "starting").into()))
                    }
                    None => Report::Connected(address, Ok(2)),
                }
            }
        });
        assert_eq!(elected.await.unwrap(), 2);
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
