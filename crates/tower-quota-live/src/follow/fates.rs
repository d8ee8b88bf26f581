use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::store::KEPT_VERSIONS;
use crate::time::Time;
use crate::version::VersionInfo;

/// What an instance has done with a version since the start of the instance.
///
/// All fields are absent if the instance has never read the version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VersionFate {
    /// When the version last came into force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_force_since: Option<Time>,
    /// When another version replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_force_until: Option<Time>,
    /// Why the instance has rejected the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

/// The fates of the latest versions, with the hashes of their texts.
#[derive(Debug, Default)]
pub(super) struct Fates(Mutex<BTreeMap<u64, (String, VersionFate)>>);

impl Fates {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (String, VersionFate)>> {
        // Each entry is complete, so the map is valid even if a thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn applied(&self, version: &VersionInfo, now: Time) {
        let mut fates = self.lock();
        for (_, fate) in fates.values_mut() {
            if fate.in_force_since.is_some() {
                fate.in_force_until.get_or_insert(now);
            }
        }
        let fate = VersionFate {
            in_force_since: Some(now),
            ..VersionFate::default()
        };
        keep(&mut fates, version, fate);
    }

    pub(super) fn rejected(&self, version: &VersionInfo, reason: String) {
        let fate = VersionFate {
            rejected: Some(reason),
            ..VersionFate::default()
        };
        keep(&mut self.lock(), version, fate);
    }

    pub(super) fn of(&self, version: &VersionInfo) -> VersionFate {
        match self.lock().get(&version.number) {
            Some((hash, fate)) if *hash == version.hash => fate.clone(),
            _ => VersionFate::default(),
        }
    }
}

fn keep(
    fates: &mut BTreeMap<u64, (String, VersionFate)>,
    version: &VersionInfo,
    fate: VersionFate,
) {
    fates.insert(version.number, (version.hash.clone(), fate));
    while fates.len() as u64 > KEPT_VERSIONS + 1 {
        fates.pop_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{NewVersion, Version};

    #[test]
    fn replaced_version_has_an_end() {
        let fates = Fates::default();
        let at = Time::from_unix_millis;
        let version =
            |number: u64, text: &str| Version::new(number, NewVersion::new(text, "ann")).info();
        fates.applied(&version(1, "one"), at(10));
        fates.rejected(&version(2, "two"), "no limits".to_owned());
        fates.applied(&version(3, "three"), at(30));
        fates.applied(&version(4, "four"), at(40));
        let times = |number, text: &str| {
            let fate = fates.of(&version(number, text));
            (fate.in_force_since, fate.in_force_until)
        };
        assert_eq!(times(1, "one"), (Some(at(10)), Some(at(30))));
        assert_eq!(times(3, "three"), (Some(at(30)), Some(at(40))));
        assert_eq!(times(4, "four"), (Some(at(40)), None));
        let rejected = fates.of(&version(2, "two"));
        assert_eq!(rejected.rejected.as_deref(), Some("no limits"));
        // Another document has the number after a loss of data.
        assert_eq!(times(1, "other"), (None, None));
        for number in 5..200 {
            fates.rejected(&version(number, "bad"), String::new());
        }
        assert_eq!(fates.lock().len() as u64, KEPT_VERSIONS + 1);
    }
}
