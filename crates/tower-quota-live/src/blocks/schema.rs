//! Defines the schema of targets, because `utoipa` has no schema of networks.

use utoipa::ToSchema;

/// The clients of a block.
#[derive(ToSchema)]
#[schema(as = Target)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "it describes another type")]
pub(super) enum TargetSchema {
    /// A client, by its key.
    Key {
        /// The scope of the key, such as `header x-api-key`.
        scope: String,
        /// The keyed hash of the key, 16 hexadecimal digits.
        hash: String,
        /// The key, if the server stores and shows readable keys.
        text: Option<String>,
    },
    /// All clients with an address in a network, such as `203.0.113.0/24`.
    Network(String),
}
