use core::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};

use crate::places::Place;

pub(crate) struct Pace {
    /// The longest time a snapshot waits for a reader.
    pub(crate) patience: Duration,
    pub(crate) longest: Duration,
}

impl Place {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::places::Places;

    #[tokio::test]
    async fn unread_stream_frees_its_place() {
        let millis = Duration::from_millis;
        let streams = Arc::new(Places::new(1, 1));
        for (patience, longest) in [(millis(20), millis(60_000)), (millis(60_000), millis(20))] {
            let pace = Pace { patience, longest };
            // Keep the receiver open, and read nothing.
            let (sender, _receiver) = tokio::sync::mpsc::channel(1);
            let place = streams.enter("ann").unwrap();
            let endless = tokio_stream::iter(core::iter::repeat(()));
            let sending = timeout(millis(10_000), place.send(pace, sender, endless));
            assert!(sending.await.is_ok());
            assert!(streams.enter("bob").is_some());
        }
    }
}
