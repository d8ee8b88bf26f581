use core::net::IpAddr;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Expected, Many};
use crate::text::{HeaderText, MethodText};

/// A sample request and its expected result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The request.
    pub request: SampleRequest,
    /// The expected result. Omitted fields are not compared.
    pub expect: Expected,
}

/// A sample request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampleRequest {
    /// The method. The default is `GET`.
    pub method: Option<MethodText>,
    /// The path with its query. The default is `/`.
    pub path: Option<Box<str>>,
    /// The host.
    pub host: Option<Box<str>>,
    /// The headers.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<HeaderText, Many<Box<str>>>,
    /// The address of the peer. The default is `192.0.2.1`.
    pub address: Option<IpAddr>,
    /// The route matched by axum. The default is the matching route of the document.
    pub route: Option<Box<str>>,
    /// The keys from your code, by their names in the document, such as `code tenant`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub keys: IndexMap<String, String>,
}
