//! Which of the addresses that sentinels name is the primary's.
//!
//! 1. Every address that is named is connected to at once, and a server that calls itself a replica is passed over.
//! 2. What more than half of the sentinels name is taken as soon as there is a connection. So a sentinel that is gone or
//!    silent costs nothing, and one that is cut off from the others is outvoted.
//! 3. In the moment after a failover most sentinels still name the old primary. When that is gone, or stays silent for a
//!    little while, the one that fewer name is taken.

use core::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult};
use tokio::task::JoinSet;

/// How long a server that most sentinels name may stay silent while another has answered.
const GRACE: Duration = Duration::from_millis(50);

pub(super) type Address = (String, u16);

/// What comes in.
pub(super) enum News<C> {
    /// A sentinel's word.
    Named(RedisResult<Address>),
    /// What came of connecting to a server that was named.
    Connected(Address, RedisResult<C>),
}

struct Candidate<C> {
    address: Address,
    votes: usize,
    /// `None` while it has not answered, and when it will not.
    connection: Option<C>,
    is_out: bool,
}

/// Takes what the sentinels say until it is clear where the primary is. `news` has a task for each sentinel.
pub(super) async fn hold<C: Send + 'static, F>(
    mut news: JoinSet<News<C>>,
    connect: impl Fn(Address) -> F,
) -> RedisResult<C>
where
    F: Future<Output = News<C>> + Send + 'static,
{
    let sentinels = news.len();
    let mut silent = sentinels;
    let mut candidates: Vec<Candidate<C>> = Vec::new();
    let mut last =
        RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, "no sentinel knows a primary that is there"));
    loop {
        let is_there = candidates.iter().any(|candidate| candidate.connection.is_some());
        let next = if silent == 0 && is_there {
            // They differ, and the one with more votes has not answered yet.
            tokio::time::timeout(GRACE, news.join_next()).await.unwrap_or_default()
        } else {
            news.join_next().await
        };
        match next {
            Some(Ok(News::Named(word))) => {
                silent -= 1;
                match word {
                    Ok(address) => match candidates.iter_mut().find(|candidate| candidate.address == address) {
                        Some(known) => known.votes += 1,
                        None => {
                            news.spawn(connect(address.clone()));
                            candidates.push(Candidate { address, votes: 1, connection: None, is_out: false });
                        }
                    },
                    Err(error) => last = error,
                }
            }
            Some(Ok(News::Connected(address, outcome))) => {
                if let Some(candidate) = candidates.iter_mut().find(|candidate| candidate.address == address) {
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
                // Nothing more will be heard, or for too long: who is there is it.
                candidates.sort_by_key(|candidate| candidate.votes);
                return candidates.into_iter().rev().find_map(|candidate| candidate.connection).ok_or(last);
            }
        }
        if let Some(chosen) = chosen(&candidates, sentinels, silent == 0)
            && let Some(connection) = candidates.swap_remove(chosen).connection
        {
            return Ok(connection);
        }
    }
}

/// The candidate that no further news can make a worse choice.
fn chosen<C>(candidates: &[Candidate<C>], sentinels: usize, all_have_spoken: bool) -> Option<usize> {
    let in_question = candidates.iter().enumerate().filter(|(_, candidate)| !candidate.is_out);
    let (best, candidate) = in_question.max_by_key(|(_, candidate)| candidate.votes)?;
    let is_settled = all_have_spoken || candidate.votes * 2 > sentinels;
    (candidate.connection.is_some() && is_settled).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::pending;

    fn address(port: u16) -> Address {
        ("redis".to_owned(), port)
    }

    /// Sentinels that name these ports, or stay silent.
    fn sentinels(ports: &[Option<u16>]) -> JoinSet<News<u16>> {
        let mut news = JoinSet::new();
        for port in ports.iter().copied() {
            news.spawn(async move {
                match port {
                    Some(port) => News::Named(Ok(address(port))),
                    None => pending().await,
                }
            });
        }
        news
    }

    /// A primary on each even port; nothing on port 1; silence on the other odd ones.
    async fn connect(address: Address) -> News<u16> {
        let outcome = match address.1 {
            1 => Err((ErrorKind::Io, "refused").into()),
            odd if odd % 2 == 1 => pending().await,
            port => Ok(port),
        };
        News::Connected(address, outcome)
    }

    #[tokio::test]
    async fn a_majority_is_not_kept_waiting() {
        assert_eq!(hold(sentinels(&[Some(2), None, Some(2)]), connect).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn one_that_is_cut_off_is_outvoted() {
        assert_eq!(hold(sentinels(&[Some(4), Some(2), Some(2)]), connect).await.unwrap(), 2);
        assert_eq!(hold(sentinels(&[Some(2), Some(2), Some(4)]), connect).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn after_a_failover_the_one_who_knows_is_believed() {
        for gone in [1, 3] {
            assert_eq!(hold(sentinels(&[Some(gone), Some(gone), Some(2)]), connect).await.unwrap(), 2, "{gone}");
        }
    }

    #[tokio::test]
    async fn when_nobody_is_there_it_says_so() {
        assert!(hold(sentinels(&[Some(1), Some(1)]), connect).await.is_err());
        assert!(hold(sentinels(&[]), connect).await.is_err());
    }
}
