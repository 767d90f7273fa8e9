//! The allow-list of senders: addresses and networks that may send to the host.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// Addresses that may send: one, or a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Senders(IpNet);

impl Senders {
    /// Whether the address is among them. An IPv4 address counts the same when it comes as IPv6.
    pub fn contain(&self, sender: IpAddr) -> bool {
        self.0.contains(&sender.to_canonical())
    }
}

impl FromStr for Senders {
    type Err = &'static str;

    /// `192.168.1.20`, `192.168.1.0/24`, `fe80::/10`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| "it is no IP address")?;
        let Some(prefix) = prefix else { return Ok(Self(address.into())) };
        let network = prefix.parse().ok().and_then(|prefix| IpNet::new(address, prefix).ok());
        network.map(Self).ok_or("the prefix is too long")
    }
}

impl fmt::Display for Senders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            write!(f, "{}", self.0.addr())
        } else {
            write!(f, "{}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_addresses_and_networks() {
        let contain =
            |senders: &str, address: &str| senders.parse::<Senders>().unwrap().contain(address.parse().unwrap());
        assert!(contain("192.168.1.20", "192.168.1.20") && !contain("192.168.1.20", "192.168.1.21"));
        assert!(contain("192.168.1.0/24", "192.168.1.255") && !contain("192.168.1.0/24", "192.168.2.0"));
        assert!(contain("10.0.0.0/8", "::ffff:10.1.2.3"), "IPv4 in IPv6");
        assert!(contain("0.0.0.0/0", "1.2.3.4") && !contain("0.0.0.0/0", "::1") && contain("::/0", "::1"));
        assert!(contain("fe80::/10", "fe80::1") && !contain("fe80::/10", "fd00::1"));
        assert!(contain("10.1.2.3/8", "10.200.0.1"), "a network is named by any address in it");
        assert!(!contain("::ffff:10.0.0.0/104", "10.0.0.1"), "IPv4 is compared as IPv4");
        for wrong in ["", "desk", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8"] {
            assert!(wrong.parse::<Senders>().is_err(), "{wrong}");
        }
        for text in ["192.168.1.20", "192.168.1.0/24", "10.1.2.3/8", "fe80::1", "fe80::/10"] {
            assert_eq!(text.parse::<Senders>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.1/32".parse::<Senders>().unwrap().to_string(), "10.0.0.1");
    }
}
