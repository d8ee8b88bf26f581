use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HeaderMatches, Many, PathMatch, is_unset};
use crate::text::{
    GrpcMethod, GrpcService, HostPattern, KeyPattern, MethodText, NameText, Network,
};

/// Conditions on a request. All given fields must match. In a list, a single matching value is
/// enough.
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
    /// The route matched by axum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Many<Box<str>>>,
    /// Patterns of values by header. All headers must match.
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
    /// A condition from your code, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Many<NameText>>,
    /// Conditions that must not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Many<Match>>,
}

impl Match {
    /// Returns whether all fields are empty, so that every request matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
