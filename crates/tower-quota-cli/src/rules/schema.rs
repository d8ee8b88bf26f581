use crate::failure::Failure;
use crate::output::{Ended, Output};

pub(crate) fn schema() -> Ended {
    let schema = serde_json::to_string_pretty(&tower_quota_rules::schema());
    let schema = schema.map_err(|error| Failure::Problem(error.to_string()))?;
    Output::document(&(), schema + "\n")
}
