use core::time::Duration;

pub(crate) fn random_up_to(longest: Duration) -> Duration {
    if longest.is_zero() {
        return Duration::ZERO;
    }
    let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(fastrand::u64(..=micros))
}
