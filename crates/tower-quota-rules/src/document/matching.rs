//! Conditions on requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HeaderMatches, Many, PathMatch, is_unset};
use crate::text::{
    GrpcMethod, GrpcService, HostPattern, KeyPattern, MethodText, NameText, Network,
};

/// Conditions on requests: all that are given must hold. Where a list is given, one of its values is enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Match {
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Many<MethodText>>,
    /// The host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Many<HostPattern>>,
    /// The path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Many<PathMatch>>,
    /// The route that axum has matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Many<Box<str>>>,
    /// Headers by name, and patterns of their values. All of them must be there.
    #[serde(skip_serializing_if = "HeaderMatches::is_empty")]
    pub header: HeaderMatches,
    /// The key of `defaults`, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Many<KeyPattern>>,
    /// The network of the client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Many<Network>>,
    /// The gRPC service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc_service: Option<Many<GrpcService>>,
    /// The gRPC method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc_method: Option<Many<GrpcMethod>>,
    /// True for CORS preflight requests.
    #[serde(skip_serializing_if = "is_unset")]
    pub cors_preflight: bool,
    /// A condition that code gives by this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Many<NameText>>,
    /// Conditions of which none may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Many<Match>>,
}

impl Match {
    /// Returns whether nothing is given, so that it matches every request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
