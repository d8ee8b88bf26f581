use schemars::Schema;
use schemars::generate::SchemaSettings;

use crate::document::Document;

/// Returns the JSON Schema of documents, draft 2020-12.
///
/// Use it for completion and checks in your editor. It is published as
/// `docs/reference/rules.schema.json`.
#[must_use]
pub fn schema() -> Schema {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Document>();
    schema.insert("title".into(), "Rules of tower-quota".into());
    // Replace the description of the type, which contains Rust code.
    schema.insert(
        "description".into(),
        "The rules of a service: who may do how much.".into(),
    );
    schema
}
