//! The allow-list of senders: addresses and networks that may send to the host.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Addresses that may send: one, or a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Senders {
    network: IpAddr,
    prefix: u8,
}

impl Senders {
    /// Whether the address is among them. An IPv4 address counts the same when it comes as IPv6.
    pub fn contain(&self, sender: IpAddr) -> bool {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, true),
            IpAddr::V6(address) => (address.to_bits(), false),
        };
        let ((network, four), (sender, sender_four)) = (bits(self.network), bits(sender.to_canonical()));
        let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
        four == sender_four && (network ^ sender) & mask == 0
    }
}

impl FromStr for Senders {
    type Err = &'static str;

    /// `192.168.1.20`, `192.168.1.0/24`, `fe80::/10`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let network: IpAddr = address.parse().map_err(|_| "it is no IP address")?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => most,
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= most).ok_or("the prefix is too long")?,
        };
        Ok(Self { network, prefix })
    }
}

impl fmt::Display for Senders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = if self.network.is_ipv4() { 32 } else { 128 };
        if self.prefix == most { write!(f, "{}", self.network) } else { write!(f, "{}/{}", self.network, self.prefix) }
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
        for wrong in ["", "desk", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Senders>().is_err(), "{wrong}");
        }
    }
}
