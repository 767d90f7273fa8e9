//! What grants name: network targets and hosts. What is read is written as it would be read again, and a wider
//! pattern covers everything that a narrower one does.

use conductor_net::endpoint::{Endpoint, EndpointPattern};
use conductor_net::http_scope::{HostPattern, Site};

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut words = text.splitn(3, '\n');
    let mut next = || words.next().unwrap_or_default();
    let (one, other, target) = (next(), next(), next());
    patterns(one, other, target);
    hosts(one, other);
}

fn patterns(one: &str, other: &str, target: &str) {
    let read = |text: &str| text.parse::<EndpointPattern>().ok();
    let (one, other, target) = (read(one), read(other), target.parse::<Endpoint>().ok());
    for pattern in one.iter().chain(&other) {
        assert_eq!(read(&pattern.to_string()).as_ref(), Some(pattern));
        assert!(pattern.includes(pattern));
        pattern.host().into_iter().for_each(is_plain);
    }
    let Some(target) = target else { return };
    is_plain(&target.host);
    assert_eq!(target.to_string().parse::<Endpoint>().ok().as_ref(), Some(&target));
    assert!(read(&target.to_string()).is_some_and(|pattern| pattern.covers(&target)));
    if let (Some(one), Some(other)) = (one, other)
        && one.includes(&other)
        && other.covers(&target)
    {
        assert!(one.covers(&target), "{one} includes {other}, which covers {target}");
    }
}

fn hosts(one: &str, other: &str) {
    let read = |text: &str| text.parse::<HostPattern>().ok();
    let (Some(one), Some(other)) = (read(one), read(other)) else { return };
    for pattern in [&one, &other] {
        assert_eq!(read(&pattern.to_string()).as_ref(), Some(pattern));
    }
    for (port, secure) in [(443, true), (80, false), (8080, true)] {
        let site = Site { host: other.host().to_owned(), port, secure };
        assert!(!one.is_any() || !one.covers(&site), "a person names the hosts");
        if one.includes(&other) && other.covers(&site) {
            assert!(one.is_any() || one.covers(&site), "{one} includes {other}, which covers {site}");
        }
        if one.covers(&site) {
            is_plain(one.host());
            assert_eq!(one.host(), other.host(), "by name alone");
        }
    }
}

/// Nothing that a resolver, a URL or a terminal could take for something else.
fn is_plain(host: &str) {
    let odd = |c: char| {
        c.is_control() || c.is_whitespace() || !c.is_ascii() || c.is_ascii_uppercase() || "@/[]?#\\%".contains(c)
    };
    assert!(!host.is_empty() && !host.contains(odd), "{host:?}");
}
