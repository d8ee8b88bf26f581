//! The plainest service with the same messages: it decodes a request, and answers that it is within its limits.

use std::net::{Ipv4Addr, SocketAddr};

use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tower_quota_server::messages::ratelimit::rate_limit_response::Code;
use tower_quota_server::messages::ratelimit::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
use tower_quota_server::messages::ratelimit::{RateLimitRequest, RateLimitResponse};

use crate::Outcome;

struct Plain;

#[tonic::async_trait]
impl RateLimitService for Plain {
    async fn should_rate_limit(
        &self,
        _request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        Ok(Response::new(RateLimitResponse {
            overall_code: Code::Ok.into(),
            ..RateLimitResponse::default()
        }))
    }
}

/// Serves on this port until the process is killed.
pub(crate) fn serve(port: u16) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let service = RateLimitServiceServer::new(Plain);
    Ok(runtime.block_on(Server::builder().add_service(service).serve(address))?)
}
