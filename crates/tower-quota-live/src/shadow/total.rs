use serde::Serialize;

use super::counts::ShadowReport;

/// The outcomes of a shadow document on all reporting instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct ShadowTotal {
    /// The number of instances with reported requests, ended instances included.
    pub instances: usize,
    /// The sum of their counts.
    #[serde(flatten)]
    pub report: ShadowReport,
}

impl ShadowTotal {
    pub(crate) fn of(version: u64, reports: &[ShadowReport]) -> Self {
        let mut report = ShadowReport {
            version,
            ..ShadowReport::default()
        };
        reports.iter().for_each(|one| report.add(one));
        Self {
            instances: reports.len(),
            report,
        }
    }
}
