//! The counts of a roll-out on all instances.

use serde::Serialize;

use super::counts::RolloutReport;

/// The outcomes of a roll-out on all instances that report them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct RolloutTotal {
    /// The number of instances that have reported requests, those that have ended since included.
    pub instances: usize,
    /// The sum of their counts.
    #[serde(flatten)]
    pub report: RolloutReport,
}

impl RolloutTotal {
    /// Sums the reports of instances about a candidate.
    pub(crate) fn of(candidate: u64, reports: &[RolloutReport]) -> Self {
        let mut report = RolloutReport {
            candidate,
            ..RolloutReport::default()
        };
        reports.iter().for_each(|one| report.add(one));
        Self {
            instances: reports.len(),
            report,
        }
    }
}
