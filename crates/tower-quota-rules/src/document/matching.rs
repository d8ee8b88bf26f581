use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Many, PathMatch};
use crate::text::{
    GrpcMethod, GrpcService, HeaderText, HostPattern, KeyPattern, MethodText, NameText, Network,
};

/// Conditions on a request. All given fields must match. In a list, a single matching value is
/// enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// The method.
    pub method: Option<Many<MethodText>>,
    /// The host.
    pub host: Option<Many<HostPattern>>,
    /// The path.
    pub path: Option<Many<PathMatch>>,
    /// The route matched by axum.
    pub route: Option<Many<Box<str>>>,
    /// Patterns of values by header. All headers must match.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub header: IndexMap<HeaderText, Many<KeyPattern>>,
    /// Patterns of values by verified claim of the client's token. All claims must match. Your code reads the token.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub claim: IndexMap<NameText, Many<KeyPattern>>,
    /// The key of `defaults`, as text.
    pub key: Option<Many<KeyPattern>>,
    /// The network of the client's address.
    pub network: Option<Many<Network>>,
    /// The gRPC service.
    pub grpc_service: Option<Many<GrpcService>>,
    /// The gRPC method.
    pub grpc_method: Option<Many<GrpcMethod>>,
    /// True for CORS preflight requests.
    #[serde(default)]
    pub cors_preflight: bool,
    /// A condition from your code, by name.
    pub code: Option<Many<NameText>>,
    /// Conditions that must not match.
    pub not: Option<Many<Match>>,
}

impl Match {
    /// Returns whether all fields are empty, so that every request matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
