//! Checks the names of limits, which header fields must be able to carry.

use crate::error::ConfigError;
use crate::name::Name;

impl Name {
    /// Checks that header fields can carry the name.
    ///
    /// # Errors
    /// [`ConfigError::LimitName`] unless the name has 1 to 64 printable ASCII characters.
    pub fn check_limit(self) -> Result<(), ConfigError> {
        let text = self.as_str().as_bytes();
        let is_valid =
            (1..=64).contains(&text.len()) && text.iter().all(|byte| matches!(byte, b' '..=b'~'));
        if is_valid {
            Ok(())
        } else {
            Err(ConfigError::LimitName(self))
        }
    }
}
