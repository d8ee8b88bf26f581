//! A subscription to the limits of an xDS server.

use core::time::Duration;
use std::hash::{BuildHasher, RandomState};

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::options::{XdsOptions, reason};
use crate::envoy::config::{EnvoyConfig, Problems, TYPE_URL};
use crate::messages::discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use crate::messages::discovery::{DiscoveryRequest, DiscoveryResponse};
use crate::messages::{Node, Status};

/// The code `INVALID_ARGUMENT`.
const INVALID: i32 = 3;
/// The longest time of an attempt to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// The shortest pause, whatever the option says.
const SHORTEST: Duration = Duration::from_millis(20);
/// How often the pause doubles.
const DOUBLINGS: u32 = 5;

#[derive(Debug)]
pub(crate) struct Subscription {
    options: XdsOptions,
    merge: bool,
    stream: Option<Stream>,
    /// The version of the last good response of the stream.
    accepted: String,
    /// Outages and refused responses in a row.
    failures: u32,
    /// Whether the caller knows about the outage.
    is_away: bool,
}

#[derive(Debug)]
struct Stream {
    requests: mpsc::Sender<DiscoveryRequest>,
    responses: Streaming<DiscoveryResponse>,
}

impl Subscription {
    pub(crate) fn new(options: &XdsOptions, merge: bool) -> Result<Self, Problems> {
        let endpoint = options.endpoint();
        endpoint.map_err(|error| Problems::of(&options.server, error))?;
        Ok(Self {
            options: options.clone(),
            merge,
            stream: None,
            accepted: String::new(),
            failures: 0,
            is_away: false,
        })
    }

    pub(crate) async fn next(&mut self) -> Result<EnvoyConfig, Problems> {
        loop {
            self.pause().await;
            match self.receive().await {
                Ok(response) => return self.judge(response).await,
                Err(error) => {
                    self.stream = None;
                    self.failures += 1;
                    if !core::mem::replace(&mut self.is_away, true) {
                        return Err(Problems::of(&self.options.server, error));
                    }
                }
            }
        }
    }

    /// Waits after a failure, longer and longer, so that many servers do not return at the same time.
    #[expect(clippy::disallowed_methods, reason = "no call waits for the limits")]
    async fn pause(&self) {
        if self.failures > 0 {
            let longest = self.options.longest_pause.into();
            tokio::time::sleep(pause(longest, self.failures)).await;
        }
    }

    async fn receive(&mut self) -> Result<DiscoveryResponse, String> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = self.connect().await?;
                self.stream.insert(stream)
            }
        };
        let response = stream.responses.message().await;
        let response = response.map_err(|status| format!("{status}: the earlier limits stay"))?;
        response
            .ok_or_else(|| "the xDS server has ended the stream: the earlier limits stay".into())
    }

    async fn connect(&mut self) -> Result<Stream, String> {
        let endpoint = self.options.endpoint()?;
        // The timeout of the endpoint does not include the handshake of TLS.
        let channel = match timeout(CONNECT, endpoint.connect()).await {
            Ok(channel) => channel.map_err(|error| reason(&error)),
            Err(_) => Err(format!("no connection within {CONNECT:?}")),
        };
        let channel = channel.map_err(|reason| format!("{reason}: is the xDS server up?"))?;
        self.accepted.clear();
        let (requests, outgoing) = mpsc::channel(2);
        // The channel is new, so it has a place.
        let _ = requests.try_send(self.request());
        let mut client = AggregatedDiscoveryServiceClient::new(channel)
            .max_decoding_message_size(self.options.largest_response());
        let outgoing = ReceiverStream::new(outgoing);
        let responses = client.stream_aggregated_resources(outgoing).await;
        let responses = responses.map_err(|status| format!("{status}: is this an xDS server?"))?;
        Ok(Stream {
            requests,
            responses: responses.into_inner(),
        })
    }

    /// Accepts or refuses a response.
    async fn judge(&mut self, response: DiscoveryResponse) -> Result<EnvoyConfig, Problems> {
        self.is_away = false;
        let (resources, merge) = (response.resources, self.merge);
        let limits = if response.type_url == TYPE_URL {
            let read = move || EnvoyConfig::decode(&resources, merge);
            let read = tokio::task::spawn_blocking(read).await;
            read.unwrap_or_else(|error| Err(Problems::of(&self.options.server, error)))
        } else {
            let message = format_args!(
                "the type {:?} is unknown: send {TYPE_URL}",
                response.type_url
            );
            Err(Problems::of(&self.options.server, message))
        };
        let mut request = self.request();
        request.response_nonce = response.nonce;
        match &limits {
            Ok(_) => {
                self.failures = 0;
                request.version_info.clone_from(&response.version_info);
                self.accepted = response.version_info;
            }
            Err(problems) => {
                self.failures += 1;
                request.error_detail = Some(Status {
                    code: INVALID,
                    message: format!("{:.8000}", problems.to_string()),
                    details: Vec::new(),
                });
            }
        }
        if let Some(stream) = &self.stream
            && stream.requests.try_send(request).is_err()
        {
            // The server does not read its stream.
            self.stream = None;
        }
        limits
    }

    fn request(&self) -> DiscoveryRequest {
        DiscoveryRequest {
            version_info: self.accepted.clone(),
            node: Some(Node {
                id: self.options.node.clone(),
            }),
            type_url: TYPE_URL.to_owned(),
            ..DiscoveryRequest::default()
        }
    }
}

/// Returns a pause that doubles with each failure, with jitter of at most half.
fn pause(longest: Duration, failures: u32) -> Duration {
    let full = (longest / (1 << DOUBLINGS.saturating_sub(failures))).max(SHORTEST);
    let part = RandomState::new().hash_one(failures) % 1_000;
    full * (1_000 + u32::try_from(part).unwrap_or(0)) / 2_000
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::pause;

    #[test]
    fn pauses_double_up_to_the_longest() {
        for (longest, failures, full) in [
            (3_200, 1, 200),
            (3_200, 2, 400),
            (3_200, 4, 1_600),
            (3_200, 5, 3_200),
            (3_200, 6, 3_200),
            (3_200, u32::MAX, 3_200),
            (0, 1, 20),
            (0, 9, 20),
        ] {
            let longest = Duration::from_millis(longest);
            let pauses: Vec<_> = (0..100).map(|_| pause(longest, failures)).collect();
            let full = Duration::from_millis(full);
            assert!(pauses.iter().all(|pause| (full / 2..=full).contains(pause)));
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{failures}");
        }
    }
}
