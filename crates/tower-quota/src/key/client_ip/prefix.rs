//! How much of an address counts.

use core::net::{IpAddr, Ipv4Addr};

use tower_quota_core::{ConfigError, Key, Name};

pub(super) const SCOPE: &str = "client ip";

/// The bits of an address that tell clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    v4: u8,
    v6: u8,
}

impl Prefix {
    pub(super) const DEFAULT: Self = Self { v4: 32, v6: 64 };

    pub(super) const fn with_v4(self, bits: u8) -> Result<Self, ConfigError> {
        if matches!(bits, 1..=32) {
            Ok(Self { v4: bits, ..self })
        } else {
            Err(ConfigError::AddressPrefix { bits, most: 32 })
        }
    }

    pub(super) const fn with_v6(self, bits: u8) -> Result<Self, ConfigError> {
        if matches!(bits, 1..=128) {
            Ok(Self { v6: bits, ..self })
        } else {
            Err(ConfigError::AddressPrefix { bits, most: 128 })
        }
    }

    /// A scope for each way to count: where it is read from, and the prefixes that are not the default's.
    pub(super) fn scope(self, source: Option<&str>) -> Name {
        let mut scope = String::from(SCOPE);
        if let Some(source) = source {
            scope.push_str(" of ");
            scope.push_str(source);
        }
        if self.v6 != Self::DEFAULT.v6 {
            scope.push_str(&format!(" /{}", self.v6));
        }
        if self.v4 != Self::DEFAULT.v4 {
            scope.push_str(&format!(" v4/{}", self.v4));
        }
        Name::from(scope)
    }

    /// The key of an address: four bytes of IPv4; eight of IPv6, or sixteen where more than 64 bits count. So the two
    /// never make one key.
    pub(super) fn key(self, scope: Name, address: IpAddr) -> Key<'static> {
        match address {
            IpAddr::V4(v4) => self.key_v4(scope, v4),
            IpAddr::V6(v6) => {
                let mask = u128::MAX << (128 - u32::from(self.v6));
                let network = (v6.to_bits() & mask).to_be_bytes();
                if self.v6 > 64 { Key::owned(scope, network) } else { Key::owned(scope, &network[..8]) }
            }
        }
    }

    /// The key of an IPv4 address.
    #[inline]
    pub(super) fn key_v4(self, scope: Name, address: Ipv4Addr) -> Key<'static> {
        let mask = u32::MAX << (32 - u32::from(self.v4));
        Key::owned(scope, (address.to_bits() & mask).to_be_bytes())
    }
}
