//! The one place that is asked. A key goes there and nowhere else.

use std::fmt;

use reqwest::Url;

/// Scheme, host and port that requests are pinned to, and what stands before every path.
#[derive(Clone, PartialEq, Eq)]
pub struct Base(Url);

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl Base {
    /// Reads `https://host[:port][/prefix]`. Plain http only to this machine itself.
    pub fn parse(text: &str) -> Result<Base, String> {
        let url = Url::parse(text.trim_end_matches('/'))
            .map_err(|_| "is no URL: write \"https://\" and the name of a host".to_owned())?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("holds a user or a password, which does not belong into a URL".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("ends in a query or a fragment".to_owned());
        }
        let base = Base(url);
        match base.0.scheme() {
            "https" if base.0.has_host() => Ok(base),
            "http" if base.is_loopback() => Ok(base),
            "http" => Err(
                "is plain http: a key would go over the network for everybody to read".to_owned(),
            ),
            _ => Err("has to begin with \"https://\"".to_owned()),
        }
    }

    /// Whether it is this machine itself, by plain http.
    pub fn is_loopback(&self) -> bool {
        self.0.scheme() == "http"
            && match self.0.host_str() {
                Some(host) => {
                    let host = host.trim_start_matches('[').trim_end_matches(']');
                    host == "localhost"
                        || host
                            .parse::<std::net::IpAddr>()
                            .is_ok_and(|address| address.is_loopback())
                }
                None => false,
            }
    }

    /// Host and port, for people.
    pub fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        match self.0.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// A path of it.
    pub(super) fn at(&self, path: &str) -> Result<Url, String> {
        let prefix = self.0.path().trim_end_matches('/');
        let mut url = self.0.clone();
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        if !path.starts_with('/') || path.split('/').any(|part| part == ".." || part == ".") {
            return Err("the path does not lead to where it seems to".to_owned());
        }
        url.set_path(&format!("{prefix}{path}"));
        url.set_query(query);
        Ok(url)
    }

    /// A link that was answered, if it leads to the same host.
    pub(super) fn linked(&self, link: &str) -> Result<Url, String> {
        let foreign = || "the link leads to another host".to_owned();
        let url = self
            .0
            .join(link)
            .map_err(|_| "the link is no URL".to_owned())?;
        let same = url.scheme() == self.0.scheme()
            && url.host_str() == self.0.host_str()
            && url.port_or_known_default() == self.0.port_or_known_default()
            && url.username().is_empty()
            && url.password().is_none();
        if same { Ok(url) } else { Err(foreign()) }
    }
}

/// Base64 with padding, RFC 4648 section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = group
            .iter()
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for at in 0..4 {
            text.push(if at <= group.len() {
                char::from(LETTERS[(word >> (18 - 6 * at) & 63) as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tls_or_this_machine_is_asked() {
        for (text, is_allowed) in [
            ("https://api.example.com", true),
            ("https://api.example.com/prefix/", true),
            ("https://api.example.com:8443", true),
            ("http://[::1]:9", true),
            ("http://localhost", true),
            ("http://api.example.com", false),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
            ("ftp://api.example.com", false),
            ("https://user:pass@api.example.com", false),
            ("https://api.example.com?key=1", false),
            ("api.example.com", false),
        ] {
            assert_eq!(Base::parse(text).is_ok(), is_allowed, "{text}");
        }
    }

    #[test]
    fn a_link_stays_on_the_host() {
        let base = Base::parse("https://api.example.com/v2").expect("a base");
        for (link, is_same) in [
            ("https://api.example.com/v2/payments?from=1", true),
            ("https://api.example.com:443/other", true),
            ("/v2/payments?from=1", true),
            ("https://api.example.com.evil.test/v2", false),
            ("https://user@api.example.com/v2", false),
            ("http://api.example.com/v2", false),
            ("https://api.example.com:444/v2", false),
            ("//evil.test/v2", false),
        ] {
            assert_eq!(base.linked(link).is_ok(), is_same, "{link}");
        }
        let at = base.at("/payments?a=b").expect("a path");
        assert_eq!(at.as_str(), "https://api.example.com/v2/payments?a=b");
        assert!(base.at("/payments/../keys").is_err());
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, want) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), want);
        }
    }
}
