//! The headers in which proxies tell whom they speak for.

use core::net::IpAddr;

use http::header::{FORWARDED, HeaderMap, HeaderName};

use super::elements::{Elements, Quotes};
use super::forwarded;
use super::node::{Ipv6, node};

/// Reads an element of a list.
type Parse = fn(&[u8]) -> Option<IpAddr>;

/// The one header in which proxies tell whom they speak for. There is deliberately none that tries several: the client
/// would choose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// `X-Forwarded-For`: a list of addresses, to which each proxy appends that of its peer.
    XForwardedFor,
    /// `Forwarded` (RFC 7239): a list of elements, to which each proxy appends one; the address is in its `for`. One
    /// without it, `unknown`, or obfuscated as `_hidden`, is a hop without an address. Addresses need not be quoted;
    /// those of IPv6 must stand in brackets.
    Forwarded,
    /// `CF-Connecting-IP`, which Cloudflare sets.
    CfConnectingIp,
    /// `True-Client-IP`, which Akamai and Cloudflare set.
    TrueClientIp,
    /// `Fly-Client-IP`, which Fly.io sets.
    FlyClientIp,
    /// `X-Real-IP`, which nginx sets when it is told to.
    XRealIp,
    /// `CloudFront-Viewer-Address`, which Amazon CloudFront sets: an address and a port, IPv6 without brackets.
    CloudFrontViewerAddress,
    /// `X-Envoy-External-Address`, which Envoy sets.
    XEnvoyExternalAddress,
    /// Another header that holds one address, with or without a port.
    Header(HeaderName),
}

impl Source {
    /// The header's name, in lower case.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => FORWARDED.as_str(),
            Self::CfConnectingIp => "cf-connecting-ip",
            Self::TrueClientIp => "true-client-ip",
            Self::FlyClientIp => "fly-client-ip",
            Self::XRealIp => "x-real-ip",
            Self::CloudFrontViewerAddress => "cloudfront-viewer-address",
            Self::XEnvoyExternalAddress => "x-envoy-external-address",
            Self::Header(name) => name.as_str(),
        }
    }

    /// What a list tells, from its right end: an address each, `None` where there is none to be made out. `None` when
    /// this is not a list.
    pub(super) fn told<'h>(&self, headers: &'h HeaderMap) -> Option<impl Iterator<Item = Option<IpAddr>> + use<'h>> {
        let (quotes, parse): (Quotes, Parse) = match self {
            Self::XForwardedFor => (Quotes::Plain, |element| node(element, Ipv6::Bare)),
            Self::Forwarded => (Quotes::Strings, forwarded::address),
            _ => return None,
        };
        Some(Elements::of(headers.get_all(self.name()), quotes).map(move |element| element.and_then(parse)))
    }

    /// The address that the header holds, if it was sent once and is one.
    pub(super) fn single(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let mut lines = headers.get_all(self.name()).iter();
        let (line, None) = (lines.next()?.as_bytes(), lines.next()) else { return None };
        match self {
            Self::CloudFrontViewerAddress => {
                let colon = line.iter().rposition(|byte| *byte == b':')?;
                let (address, port) = (&line[..colon], &line[colon + 1..]);
                if port.is_empty() || !port.iter().all(u8::is_ascii_digit) {
                    return None;
                }
                node(address, Ipv6::Bare)
            }
            _ => node(line, Ipv6::Bare),
        }
    }
}
