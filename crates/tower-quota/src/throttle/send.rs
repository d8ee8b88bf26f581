use core::future::{Future, poll_fn};
use core::mem;
use core::pin::pin;
use core::task::Poll;
use std::sync::Arc;

use tower_quota_core::{Store, Turn};
use tower_service::Service;

use super::error::ThrottleError;
use super::layer::ThrottleLayer;
use super::pushbacks::now;

pub(super) async fn send<Svc, R, S, T>(
    layer: Arc<ThrottleLayer<S, R, T>>,
    mut service: Svc,
    mut request: R,
) -> Result<T, ThrottleError<Svc::Error>>
where
    Svc: Service<R, Response = T> + Clone,
    S: Store + Clone,
{
    let gate = &layer.gate;
    let key = (layer.key)(&gate.limiter, &request);
    let cost = (layer.cost)(&request);
    let longest = gate.limiter.longest_wait();
    let start = now();

    let mut is_immediate = true;
    let turn = {
        let mut entering = pin!(gate.enter(&key, cost, longest));
        poll_fn(|cx| {
            let turn = entering.as_mut().poll(cx);
            if turn.is_pending() && is_immediate {
                is_immediate = false;
                // Release the ready service, because other requests may need its reserved permit.
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
        let retries = layer.retries.as_deref();
        let again = retries.and_then(|retries| {
            let copy = retries.copy(&request, attempt)?;
            Some((retries, copy, service.clone()))
        });
        let response = service.call(request);
        drop(service);
        let held = turn.map(Turn::hold);
        pending_if(mem::take(&mut is_immediate)).await;
        let response = response.await.map_err(ThrottleError::Inner)?;
        drop(held);
        if let Some(pause) = (layer.pushback)(&response) {
            gate.push_back(key.clone(), pause);
        }

        let Some((retries, copy, clone)) = again else {
            return Ok(response);
        };
        let rest = longest.saturating_sub(start.elapsed());
        let Some(wait) = retries.wait(&response, attempt, rest) else {
            return Ok(response);
        };
        // If no retry is possible, the caller gets the remote's refusal.
        let Some(next) = gate.enter_after(wait, &key, cost, rest).await else {
            return Ok(response);
        };
        drop(response);
        turn = next;
        request = copy;
        service = clone;
        become_ready(&mut service).await?;
        attempt += 1;
    }
}

/// Ends the first poll, in `Throttle::call`.
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
