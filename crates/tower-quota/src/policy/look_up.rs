use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use futures_util::future::join_all;
use http::Extensions;
use tokio::time::timeout;

use crate::head::RequestHead;

#[derive(Clone)]
pub(crate) struct LookUp(Arc<Begin>);

type Begin = dyn Fn(&RequestHead<'_>) -> Pending + Send + Sync;

type Pending = Pin<Box<dyn Future<Output = Extensions> + Send>>;

impl LookUp {
    pub(super) fn new<F, A, T>(deadline: Duration, ask: F) -> Self
    where
        F: Fn(&RequestHead<'_>) -> A + Send + Sync + 'static,
        A: Future<Output = Option<T>> + Send + 'static,
        T: Clone + Send + Sync + 'static,
    {
        Self(Arc::new(move |head| {
            let answer = ask(head);
            Box::pin(async move {
                let mut found = Extensions::new();
                if let Ok(Some(value)) = timeout(deadline, answer).await {
                    found.insert(value);
                }
                found
            })
        }))
    }
}

pub(crate) struct LookUps(Vec<Pending>);

impl LookUps {
    pub(crate) fn begin(look_ups: &[LookUp], head: &RequestHead<'_>) -> Self {
        Self(look_ups.iter().map(|look_up| (look_up.0)(head)).collect())
    }

    /// Waits for all look-ups at the same time.
    pub(crate) async fn found(self) -> Extensions {
        let mut found = Extensions::new();
        for one in join_all(self.0).await {
            found.extend(one);
        }
        found
    }
}
