//! The JSON Schema of documents.

use schemars::Schema;
use schemars::generate::SchemaSettings;

use crate::document::Document;

/// Returns the JSON Schema of documents, of draft 2020-12, made from the types.
///
/// Editors complete and check documents by it. It is published as `docs/reference/rules.schema.json`.
#[must_use]
pub fn schema() -> Schema {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Document>();
    schema.insert("title".into(), "Rules of tower-quota".into());
    // The type's own description has an example in Rust.
    schema.insert(
        "description".into(),
        "The rules of a service: who may do how much.".into(),
    );
    schema
}
