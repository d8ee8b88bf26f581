use core::net::IpAddr;

use http::header::{HeaderMap, HeaderName, InvalidHeaderName};

use super::list::{Ipv6, Quotes, address, elements, forwarded_address};

type Parse = fn(&[u8]) -> Option<IpAddr>;

/// The header in which your proxies write the client's address.
///
/// There is no fallback, because clients could then choose the header.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// `X-Forwarded-For`, to which every proxy appends the peer's address.
    XForwardedFor,
    /// `Forwarded` (RFC 7239), to which every proxy appends the peer in `for`.
    ///
    /// If `for` is absent, `unknown` or obfuscated, the hop has no address.
    Forwarded,
    /// `CF-Connecting-IP` from Cloudflare.
    CfConnectingIp,
    /// `True-Client-IP` from Akamai and Cloudflare.
    TrueClientIp,
    /// `Fly-Client-IP` from Fly.io.
    FlyClientIp,
    /// `X-Real-IP` from nginx, if configured.
    XRealIp,
    /// `CloudFront-Viewer-Address` from Amazon CloudFront, with a port.
    CloudFrontViewerAddress,
    /// `X-Envoy-External-Address` from Envoy.
    XEnvoyExternalAddress,
    /// Another header with one address, with or without a port.
    Header(HeaderName),
}

static KNOWN: [Source; 8] = [
    Source::XForwardedFor,
    Source::Forwarded,
    Source::CfConnectingIp,
    Source::TrueClientIp,
    Source::FlyClientIp,
    Source::XRealIp,
    Source::CloudFrontViewerAddress,
    Source::XEnvoyExternalAddress,
];

pub(crate) fn sent(headers: &HeaderMap) -> Option<&'static str> {
    // Comparing few headers is cheaper than parsing and hashing eight names.
    headers.keys().find_map(|sent| {
        KNOWN
            .iter()
            .map(Source::name)
            .find(|known| *known == sent.as_str())
    })
}

impl Source {
    /// Returns the source for this header.
    ///
    /// # Errors
    /// Returns an error if `name` is invalid.
    pub fn try_header(name: &str) -> Result<Self, InvalidHeaderName> {
        let name = HeaderName::from_bytes(name.as_bytes())?;
        let known = KNOWN.iter().find(|source| source.name() == name);
        Ok(known.cloned().unwrap_or(Self::Header(name)))
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
            elements(headers.get_all(self.name()), quotes)
                .map(move |element| element.and_then(parse)),
        )
    }

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
