use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use http::Extensions;
use tokio::time::timeout;

use crate::head::RequestHead;

#[derive(Clone)]
pub(crate) struct LookUp(Arc<Begin>);

type Begin = dyn Fn(&RequestHead<'_>) -> Pending + Send + Sync;

/// A look-up in flight, with at most one extension as the result.
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

pub(crate) struct LookUps {
    pending: Vec<Pending>,
    found: Extensions,
}

impl LookUps {
    pub(crate) fn begin(look_ups: &[LookUp], head: &RequestHead<'_>) -> Self {
        Self {
            pending: look_ups.iter().map(|look_up| (look_up.0)(head)).collect(),
            found: Extensions::new(),
        }
    }
}

impl Future for LookUps {
    type Output = Extensions;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Extensions> {
        let Self { pending, found } = &mut *self;
        pending.retain_mut(|look_up| match look_up.as_mut().poll(cx) {
            Poll::Ready(one) => {
                found.extend(one);
                false
            }
            Poll::Pending => true,
        });
        if pending.is_empty() {
            Poll::Ready(core::mem::take(found))
        } else {
            Poll::Pending
        }
    }
}
