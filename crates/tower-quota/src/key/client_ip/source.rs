//! The headers in which proxies write the client's address.

use core::net::IpAddr;

use http::header::{HeaderMap, HeaderName, InvalidHeaderName};

use super::list::{Elements, Ipv6, Quotes, address, forwarded_address};

/// A function that reads an element of a list.
type Parse = fn(&[u8]) -> Option<IpAddr>;

/// The one header in which proxies write the client's address.
///
/// A source never tries several headers, because then the client would choose one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// `X-Forwarded-For`: a list of addresses, to which each proxy appends its peer's address.
    XForwardedFor,
    /// `Forwarded` (RFC 7239): a list of elements, to which each proxy appends its peer in `for`.
    ///
    /// If `for` is absent, `unknown`, or obfuscated as `_hidden`, the hop has no address.
    Forwarded,
    /// `CF-Connecting-IP`, which Cloudflare sets.
    CfConnectingIp,
    /// `True-Client-IP`, which Akamai and Cloudflare set.
    TrueClientIp,
    /// `Fly-Client-IP`, which Fly.io sets.
    FlyClientIp,
    /// `X-Real-IP`, which nginx sets when it is configured to.
    XRealIp,
    /// `CloudFront-Viewer-Address`, which Amazon CloudFront sets: address and port, IPv6 without brackets.
    CloudFrontViewerAddress,
    /// `X-Envoy-External-Address`, which Envoy sets.
    XEnvoyExternalAddress,
    /// Another header that holds one address, with or without a port.
    Header(HeaderName),
}

/// The headers of all sources except [`Source::Header`].
const KNOWN: [&str; 8] = [
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "cf-connecting-ip",
    "true-client-ip",
    "fly-client-ip",
    "cloudfront-viewer-address",
    "x-envoy-external-address",
];

/// Returns a known header of proxies that is in a request.
pub(crate) fn sent(headers: &HeaderMap) -> Option<&'static str> {
    // Looking up each name would parse and hash it. Requests have few headers, and comparing names is cheaper.
    headers
        .keys()
        .find_map(|sent| KNOWN.into_iter().find(|known| *known == sent.as_str()))
}

impl Source {
    /// Returns the source that reads the header of this name.
    ///
    /// # Errors
    /// [`InvalidHeaderName`] if the text is not the name of a header.
    pub fn try_header(name: &str) -> Result<Self, InvalidHeaderName> {
        let name = HeaderName::from_bytes(name.as_bytes())?;
        let known = [
            Self::XForwardedFor,
            Self::Forwarded,
            Self::CfConnectingIp,
            Self::TrueClientIp,
            Self::FlyClientIp,
            Self::XRealIp,
            Self::CloudFrontViewerAddress,
            Self::XEnvoyExternalAddress,
        ];
        Ok(known
            .into_iter()
            .find(|source| source.name() == name)
            .unwrap_or(Self::Header(name)))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
            Self::CfConnectingIp => "cf-connecting-ip",
            Self::TrueClientIp => "true-client-ip",
            Self::FlyClientIp => "fly-client-ip",
            Self::XRealIp => "x-real-ip",
            Self::CloudFrontViewerAddress => "cloudfront-viewer-address",
            Self::XEnvoyExternalAddress => "x-envoy-external-address",
            Self::Header(name) => name.as_str(),
        }
    }

    /// Returns the addresses of a list from the right, `None` for other elements; `None` if this source is not a list.
    pub(super) fn list<'h>(
        &self,
        headers: &'h HeaderMap,
    ) -> Option<impl Iterator<Item = Option<IpAddr>> + use<'h>> {
        let (quotes, parse): (Quotes, Parse) = match self {
            Self::XForwardedFor => (Quotes::Plain, |element| address(element, Ipv6::Bare)),
            Self::Forwarded => (Quotes::Strings, forwarded_address),
            _ => return None,
        };
        Some(
            Elements::of(headers.get_all(self.name()), quotes)
                .map(move |element| element.and_then(parse)),
        )
    }

    /// Returns the address in the header, if it was sent once and is an address.
    pub(super) fn single(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let mut lines = headers.get_all(self.name()).iter();
        let (line, None) = (lines.next()?.as_bytes(), lines.next()) else {
            return None;
        };
        match self {
            Self::CloudFrontViewerAddress => {
                let colon = line.iter().rposition(|byte| *byte == b':')?;
                let (before, port) = (&line[..colon], &line[colon + 1..]);
                if port.is_empty() || !port.iter().all(u8::is_ascii_digit) {
                    return None;
                }
                address(before, Ipv6::Bare)
            }
            _ => address(line, Ipv6::Bare),
        }
    }
}
