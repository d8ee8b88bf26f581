use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::Sender;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};

use crate::AdminOptions;

#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The number of streams by author. Requests without an author share the empty name.
    open: Mutex<HashMap<String, usize>>,
}

/// A place for a stream, which its drop frees.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    streams: Arc<Streams>,
    author: String,
}

pub(crate) struct Pace {
    /// The longest time a snapshot waits for a reader.
    pub(crate) patience: Duration,
    pub(crate) longest: Duration,
}

impl Streams {
    pub(crate) fn enter(self: &Arc<Self>, author: &str) -> Option<StreamPlace> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.get(author).copied().unwrap_or_default();
        let is_full = open.values().sum::<usize>() >= AdminOptions::MOST_STREAMS;
        if is_full || !author.is_empty() && own >= AdminOptions::MOST_STREAMS_EACH {
            return None;
        }
        open.insert(author.to_owned(), own + 1);
        Some(StreamPlace {
            streams: Arc::clone(self),
            author: author.to_owned(),
        })
    }
}

impl StreamPlace {
    /// Sends snapshots until the stream ends, or its reader stops reading.
    ///
    /// Run the call in a task, since an unread body is never polled and could not free its place.
    pub(crate) async fn send<T>(
        self,
        pace: Pace,
        reader: Sender<T>,
        mut snapshots: impl Stream<Item = T> + Unpin,
    ) {
        let sending = async {
            while let Some(snapshot) = snapshots.next().await {
                let sent = timeout(pace.patience, reader.send(snapshot)).await;
                if !matches!(sent, Ok(Ok(()))) {
                    return;
                }
            }
        };
        let _ = timeout(pace.longest, sending).await;
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let open = &self.streams.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.author) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.author);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unread_stream_frees_its_place() {
        let millis = Duration::from_millis;
        let streams = Arc::new(Streams::default());
        for (patience, longest) in [(millis(20), millis(60_000)), (millis(60_000), millis(20))] {
            let pace = Pace { patience, longest };
            // Keep the receiver open, and read nothing.
            let (sender, _receiver) = tokio::sync::mpsc::channel(1);
            let place = streams.enter("ann").unwrap();
            let endless = tokio_stream::iter(core::iter::repeat(()));
            let sending = timeout(millis(10_000), place.send(pace, sender, endless));
            assert!(sending.await.is_ok());
            assert!(streams.open.lock().unwrap().is_empty());
        }
    }

    #[test]
    fn one_token_takes_not_all_places() {
        let streams = Arc::new(Streams::default());
        let enter = |author: &str, most| -> Vec<StreamPlace> {
            core::iter::from_fn(|| streams.enter(author))
                .take(most)
                .collect()
        };
        let ann = enter("ann", 99);
        assert_eq!(ann.len(), AdminOptions::MOST_STREAMS_EACH);
        assert!(streams.enter("bob").is_some());
        let others = enter("", 99);
        assert_eq!(ann.len() + others.len(), AdminOptions::MOST_STREAMS);
        assert!(streams.enter("bob").is_none());
        drop(ann);
        assert!(streams.enter("bob").is_some());
    }
}
