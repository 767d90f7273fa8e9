//! Which users of this computer may connect: the one who runs this, and root.
//!
//! Any user can connect to a port of 127.0.0.1, and browsers send a cookie of 127.0.0.1 to each of its ports, so that a
//! server of another user could come to know ours. Linux says of every TCP connection whose it is; where no system says
//! so, a cookie or a link is all that a client needs.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// Whether a client at this address may be answered by the server at `port`. A client that has gone may not.
pub(super) fn may_connect(client: SocketAddr, port: u16) -> bool {
    for _ in 0..MAX_LOOKUPS {
        let tables: Vec<String> = TABLES.iter().filter_map(|table| fs::read_to_string(table).ok()).collect();
        if tables.is_empty() {
            return true;
        }
        if let Some(user) = tables.iter().find_map(|table| user(table, client, port)) {
            return user == 0 || user == rustix::process::geteuid().as_raw();
        }
    }
    false
}

/// How often a client is looked for: a table that changes while it is read can lack lines that were there all along.
const MAX_LOOKUPS: usize = 3;

/// Where Linux lists connections.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The user id of a client's end of its connection to `port`, from a table with a line for each end:
/// `NUMBER: LOCAL REMOTE STATE QUEUES TIMER RETRANSMITS USER ...`, where an end is `ADDRESS:PORT` in hex digits.
fn user(table: &str, client: SocketAddr, port: u16) -> Option<u32> {
    let IpAddr::V4(address) = client.ip() else { return None };
    // As a number of this processor's; of an IPv6 address, which such a client may have, these are the last digits.
    let address = format!("{:08X}", u32::from_ne_bytes(address.octets()));
    let (local, remote) = (format!("{address}:{:04X}", client.port()), format!("{address}:{port:04X}"));
    table.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let ours = fields.next()?.ends_with(&local) && fields.next()?.ends_with(&remote);
        ours.then(|| fields.nth(4)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_line_of_the_clients_end_has_its_user() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n\
             \x20  1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 2 1\n\
             \x20  2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 3 1\n";
        let client = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(user(table, client(50_000), 8080), Some(1000));
        assert_eq!(user(table, client(50_001), 8080), None);
        assert_eq!(user(table, client(50_000), 8081), None);
        let six =
            "   0: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1F90 01 0:0 0:0 0 33 0 4\n";
        assert_eq!(user(six, client(50_000), 8080), Some(33));
    }
}
