use core::future::{Future, poll_fn};
use core::mem;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;

use tower_quota_core::{AsKey, Store, Turn};
use tower_service::Service;

use super::error::ThrottleError;
use super::layer::ThrottleLayer;
use super::pushbacks::now;
use super::reader::Reader;

pub(super) async fn send<Svc, R, S, K, C, H, Q, P>(
    layer: Arc<ThrottleLayer<S, K, C, H, Q, P>>,
    mut service: Svc,
    mut request: R,
) -> Result<Svc::Response, ThrottleError<Svc::Error>>
where
    Svc: Service<R> + Clone,
    S: Store + Clone,
    K: Reader<R, Value: AsKey>,
    C: Reader<R, Value = u64>,
    H: Reader<Svc::Response, Value = Option<Duration>>,
    Q: Reader<R, Value = Option<R>>,
    P: Reader<Svc::Response, Value = Option<Duration>>,
{
    let (gate, retries) = (&layer.gate, &layer.retries);
    let key = gate.limiter.key_of(&layer.key.read(&request));
    let cost = layer.cost.read(&request);
    let longest = gate.limiter.longest_wait();
    let start = now();

    let mut is_immediate = true;
    let turn = {
        let mut entering = pin!(gate.enter(&key, cost, longest));
        poll_fn(|cx| {
            let turn = entering.as_mut().poll(cx);
            if turn.is_pending() && is_immediate {
                is_immediate = false;
                // Other requests may need the reserved permit.
                service = service.clone();
            }
            turn
        })
        .await
    };
    let mut turn = match turn {
        Ok(turn) => turn,
        Err(error) => {
            drop(service);
            pending_if(is_immediate).await;
            return Err(error);
        }
    };
    if !is_immediate {
        become_ready(&mut service).await?;
    }

    let mut attempt = 1;
    loop {
        let copy = retries.copy(&request, attempt);
        let again = copy.map(|request| (request, service.clone()));
        let response = service.call(request);
        drop(service);
        drop(turn.map(Turn::spend));
        pending_if(mem::take(&mut is_immediate)).await;
        let response = response.await.map_err(ThrottleError::Inner)?;
        if let Some(pause) = layer.pushback.read(&response) {
            gate.push_back(key.clone(), pause);
        }

        let Some(again) = again else {
            return Ok(response);
        };
        let rest = longest.saturating_sub(start.elapsed());
        let Some(wait) = retries.wait(&response, attempt, rest) else {
            return Ok(response);
        };
        // Without a retry, return the remote's refusal.
        let Some(next) = gate.enter_after(wait, &key, cost, rest).await else {
            return Ok(response);
        };
        drop(response);
        turn = next;
        (request, service) = again;
        become_ready(&mut service).await?;
        attempt += 1;
    }
}

/// Ends the poll in `Throttle::call`.
async fn pending_if(mut is_in_call: bool) {
    poll_fn(|_| {
        if mem::take(&mut is_in_call) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

async fn become_ready<Svc: Service<R>, R>(
    service: &mut Svc,
) -> Result<(), ThrottleError<Svc::Error>> {
    poll_fn(|cx| service.poll_ready(cx))
        .await
        .map_err(ThrottleError::Inner)
}
