//! limitador with its storage in memory: fixed windows, chosen by a context of named values.

use std::collections::HashMap;
use std::error::Error;

use limitador::RateLimiter;
use limitador::limit::{Context, Limit, Namespace};

use super::allowance::Allowance;
use super::contender::Contender;

pub(crate) struct Limitador {
    limiter: RateLimiter,
    namespace: Namespace,
}

impl Limitador {
    /// Creates limits on one variable, counted together, with a cache for twice this number of keys.
    pub(crate) fn new(allowances: &[Allowance], keys: u32) -> Result<Self, Box<dyn Error>> {
        let limiter = RateLimiter::new(u64::from(keys.max(1_000)) * allowances.len() as u64 * 2);
        for allowance in allowances {
            let (most, window) = (u64::from(allowance.burst), allowance.unit().as_secs());
            limiter.add_limit(Limit::new(
                "bench",
                most,
                window,
                vec![],
                vec!["user".try_into()?],
            ));
        }
        Ok(Self {
            limiter,
            namespace: "bench".into(),
        })
    }
}

impl Contender<String> for Limitador {
    fn admits(&self, key: &String) -> bool {
        let context = Context::from(HashMap::from([("user".to_owned(), key.clone())]));
        self.limiter
            .check_rate_limited_and_update(&self.namespace, &context, 1)
            .is_ok_and(|checked| !checked.limited)
    }
}
