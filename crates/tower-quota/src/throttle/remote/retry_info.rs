//! Decodes gRPC status details (Protocol Buffers).

use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::HeaderMap;

/// The maximum length in base64, because servers limit all headers together to 8 KiB.
const MAX_BYTES: usize = 8_192;

pub(super) fn retry_delay(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("grpc-status-details-bin")?;
    if value.len() > MAX_BYTES {
        return None;
    }
    let base64 = value.to_str().ok()?.trim_end_matches('=');
    let status = STANDARD_NO_PAD.decode(base64).ok()?;
    status_delay(&status)
}

/// Reads `google.rpc.Status { 3: repeated google.protobuf.Any }`.
fn status_delay(status: &[u8]) -> Option<Duration> {
    fields(status)
        .filter(|field| field.number == 3)
        .find_map(|detail| any_delay(detail.bytes))
}

/// Reads `Any { 1: type_url, 2: RetryInfo { 1: Duration } }`.
fn any_delay(detail: &[u8]) -> Option<Duration> {
    let type_url = last(detail, 1)?.bytes;
    if !type_url.ends_with(b"/google.rpc.RetryInfo") {
        return None;
    }
    let info = last(detail, 2)?.bytes;
    duration(last(info, 1)?.bytes)
}

/// Reads a positive `google.protobuf.Duration { 1: int64 seconds, 2: int32 nanos }`.
fn duration(message: &[u8]) -> Option<Duration> {
    let value = |number| last(message, number).map_or(0, |field| field.value);
    let seconds = u64::try_from(value(1).cast_signed()).ok()?;
    let nanos = u32::try_from(value(2)).ok()?;
    (nanos < 1_000_000_000).then(|| Duration::new(seconds, nanos))
}

struct Field<'a> {
    number: u64,
    value: u64,
    bytes: &'a [u8],
}

fn last(message: &[u8], number: u64) -> Option<Field<'_>> {
    fields(message)
        .filter(|field| field.number == number)
        .last()
}

/// Yields the fields of a message, up to the first invalid byte.
fn fields(mut message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    core::iter::from_fn(move || {
        let tag = take_varint(&mut message)?;
        let value = if tag & 7 == 0 {
            take_varint(&mut message)?
        } else {
            0
        };
        let length = match tag & 7 {
            0 => 0,
            1 => 8,
            2 => usize::try_from(take_varint(&mut message)?).ok()?,
            5 => 4,
            _ => return None,
        };
        Some(Field {
            number: tag >> 3,
            value,
            bytes: take(&mut message, length)?,
        })
    })
}

fn take<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(taken)
}

fn take_varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(message, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;
    use tonic::{Code, Status};
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;

    fn details(delay: Option<Duration>) -> Vec<u8> {
        let mut details = ErrorDetails::with_debug_info(vec![String::from("frame")], "note");
        details.set_retry_info(delay);
        Status::with_error_details(Code::Unavailable, "busy", details)
            .details()
            .to_vec()
    }

    #[test]
    fn delay_of_retry_info_is_read() {
        for delay in [
            Duration::ZERO,
            Duration::from_millis(1_500),
            Duration::from_secs(86_400),
        ] {
            assert_eq!(status_delay(&details(Some(delay))), Some(delay));
        }
        assert_eq!(status_delay(&details(None)), None);
    }

    #[test]
    fn invalid_delay_is_ignored() {
        for message in [
            // These encode -1 second, 10^9 nanoseconds and -1 nanosecond.
            &[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1][..],
            &[16, 0x80, 0x94, 0xeb, 0xdc, 3],
            &[16, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
        ] {
            assert_eq!(duration(message), None, "{message:?}");
        }
    }

    #[test]
    fn longer_details_are_ignored() {
        let header = |length| {
            let mut status = details(Some(Duration::from_secs(7)));
            // The tag is field 15, of bytes.
            status.extend([0x7a, 0x80, 0x28]);
            status.resize(length, 0);
            let value = STANDARD_NO_PAD.encode(status);
            HeaderMap::from_iter([(
                http::HeaderName::from_static("grpc-status-details-bin"),
                HeaderValue::from_str(&value).unwrap(),
            )])
        };
        assert_eq!(
            retry_delay(&header(MAX_BYTES / 4 * 3)),
            Some(Duration::from_secs(7))
        );
        assert_eq!(retry_delay(&header(MAX_BYTES / 4 * 3 + 1)), None);
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = status_delay(&bytes);
            let _ = any_delay(&bytes);
            let _ = duration(&bytes);
        }

        #[test]
        fn damaged_details_are_survived(at in 0_usize..200, byte: u8, length in 0_usize..200) {
            let mut status = details(Some(Duration::from_secs(7)));
            let at = at % status.len();
            status[at] = byte;
            status.truncate(length);
            let _ = status_delay(&status);
        }
    }
}
