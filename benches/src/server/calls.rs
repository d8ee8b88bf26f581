//! The calls of a load, and the limits of the servers.

use prost::Message;
use tower_quota_server::messages::descriptors::RateLimitDescriptor;
use tower_quota_server::messages::descriptors::rate_limit_descriptor::Entry;
use tower_quota_server::messages::ratelimit::RateLimitRequest;

use crate::traffic::Draws;

/// The places in a message where a user and a path are written.
const USER: &str = "u00000000";
const PATH: &str = "p00000000";
/// The paths of mixed calls.
const PATHS: u64 = 20;
/// Users are numbered with eight digits.
const MOST_USERS: u64 = 100_000_000;

/// Who calls.
#[derive(Clone, Copy)]
pub(crate) enum Users {
    /// Each of so many, equally often.
    Returning(u64),
    /// Each user once.
    New,
    /// So many, of whom the users with low numbers call most.
    Skewed(u64),
}

/// Calls that differ in their users and paths only.
pub(crate) struct Calls {
    message: Vec<u8>,
    users: Users,
}

impl Calls {
    /// Returns calls with so many descriptors, which have one entry of the user each.
    pub(crate) fn named(kind: &str, descriptors: usize, users: Users) -> Self {
        let descriptors = (0..descriptors).map(|number| vec![(format!("{kind}{number}"), USER)]);
        Self::of(descriptors.collect(), users)
    }

    /// Returns calls with descriptors of a path, a user, both, and everyone.
    pub(crate) fn mixed(users: Users) -> Self {
        let entry = |key: &str, value| (key.to_owned(), value);
        let descriptors = vec![
            vec![entry("path", PATH)],
            vec![entry("user", USER)],
            vec![entry("path", PATH), entry("user", USER)],
            vec![entry("all", "all")],
        ];
        Self::of(descriptors, users)
    }

    fn of(descriptors: Vec<Vec<(String, &str)>>, users: Users) -> Self {
        let descriptors = descriptors.into_iter().map(|entries| {
            let entries = entries.into_iter().map(|(key, value)| Entry {
                key,
                value: value.to_owned(),
            });
            RateLimitDescriptor {
                entries: entries.collect(),
                ..RateLimitDescriptor::default()
            }
        });
        let request = RateLimitRequest {
            domain: "bench".to_owned(),
            descriptors: descriptors.collect(),
            hits_addend: 0,
        };
        Self {
            message: request.encode_to_vec(),
            users,
        }
    }

    /// Returns a function that writes one message after the other.
    pub(crate) fn writer(&self) -> impl FnMut(&mut Vec<u8>) {
        let places = |text: &str| -> Vec<usize> {
            let windows = self.message.windows(text.len()).enumerate();
            let found = windows.filter(|(_, window)| *window == text.as_bytes());
            found.map(|(place, _)| place).collect()
        };
        let (of_user, of_path) = (places(USER), places(PATH));
        let (message, users) = (self.message.clone(), self.users);
        let (mut draws, mut sent) = (Draws::new(1), 0);
        move |bytes| {
            bytes.extend_from_slice(&message);
            let user = users.draw(&mut draws, sent);
            sent += 1;
            let path = draws.next() % PATHS;
            for place in &of_user {
                write_digits(&mut bytes[place + 1..place + USER.len()], user);
            }
            for place in &of_path {
                write_digits(&mut bytes[place + 1..place + PATH.len()], path);
            }
        }
    }
}

impl Users {
    /// Returns the number of a user.
    pub(crate) fn draw(self, draws: &mut Draws, sent: u64) -> u64 {
        match self {
            Self::Returning(users) => draws.next() % users,
            Self::New => sent % MOST_USERS,
            Self::Skewed(users) => {
                let smaller = draws.next().min(draws.next()).min(draws.next());
                ((smaller >> 32) * users) >> 32
            }
        }
    }
}

/// Writes a number in place of digits.
pub(crate) fn write_digits(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Returns limits for all calls, and so many more.
///
/// The limits refuse when the store fails, so that no call is admitted without a decision. Limits whose keys begin with r
/// refuse nearly every call.
pub(crate) fn limits(more: usize) -> String {
    let mut text = String::from("domain: bench\ndescriptors:\n");
    let mut limit = |key: &str, fields: &str| {
        text += &format!(
            "  - {{ key: {key}, rate_limit: {{ {fields}, on_store_failure: refuse }} }}\n"
        );
    };
    const MANY: &str = "unit: hour, requests_per_unit: 1000000000";
    for number in 0..10 {
        limit(&format!("k{number}"), MANY);
        limit(
            &format!("t{number}"),
            &format!("{MANY}, algorithm: token_bucket"),
        );
        limit(&format!("r{number}"), "unit: year, requests_per_unit: 1");
    }
    limit("user", MANY);
    limit("all", MANY);
    for number in 0..more {
        limit(
            &format!("more, value: v{number}"),
            "unit: minute, requests_per_unit: 100",
        );
    }
    text += &format!(
        "  - key: path\n    rate_limit: {{ {MANY}, on_store_failure: refuse }}\n    \
         descriptors: [{{ key: user, rate_limit: {{ {MANY}, on_store_failure: refuse }} }}]\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message;
    use tower_quota_server::envoy::EnvoyConfig;
    use tower_quota_server::messages::ratelimit::RateLimitRequest;

    use super::{Calls, Users, limits};

    #[test]
    fn messages_differ_in_users_and_paths() {
        let calls = Calls::mixed(Users::Skewed(100));
        let mut write = calls.writer();
        let mut users = BTreeSet::new();
        for _ in 0..200 {
            let mut bytes = Vec::new();
            write(&mut bytes);
            let request = RateLimitRequest::decode(&*bytes).unwrap();
            let both = &request.descriptors[2].entries;
            assert_eq!(both[0].value, request.descriptors[0].entries[0].value);
            assert_eq!(both[1].value, request.descriptors[1].entries[0].value);
            assert!(both[1].value.as_str() < "u00000100", "{both:?}");
            users.insert(both[1].value.clone());
        }
        assert!(users.len() > 20, "{users:?}");
    }

    #[test]
    fn limits_are_read() {
        let text = limits(10_000);
        let config = EnvoyConfig::parse([("limits.yaml", text.as_str())], false).unwrap();
        assert_eq!(config.limits(), 10_034);
    }
}
