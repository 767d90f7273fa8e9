//! The receive buffer of a UDP socket: its size, and datagrams that the system dropped because it was full.
//!
//! The system drops a datagram silently if the buffer is full. So the buffer is made large enough for a burst that
//! comes while the reader waits for a processor, and datagrams that are dropped all the same are counted on systems
//! that report them.

use std::net::UdpSocket;

/// Bytes that are asked for. The system counts what it needs to keep a datagram, too: of short ones it is room
/// for more than 5 000.
#[cfg(unix)]
const BUFFER_BYTES: usize = 4 << 20;

/// Asks for a larger receive buffer. Without privileges it becomes as large as the administrator allows
/// (`net.core.rmem_max`).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn enlarge(socket: &UdpSocket) {
    use rustix::net::sockopt;
    if sockopt::set_socket_recv_buffer_size_force(socket, BUFFER_BYTES).is_err() {
        // What is smaller than asked for is no error.
        let _ = sockopt::set_socket_recv_buffer_size(socket, BUFFER_BYTES);
    }
}

/// Asks for a larger receive buffer. Where one so large is not allowed, half of it may be.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
pub(super) fn enlarge(socket: &UdpSocket) {
    let halves = std::iter::successors(Some(BUFFER_BYTES), |size| Some(size / 2)).take(5);
    let _ = halves.into_iter().find(|size| rustix::net::sockopt::set_socket_recv_buffer_size(socket, *size).is_ok());
}

#[cfg(not(unix))]
pub(super) fn enlarge(_: &UdpSocket) {}

/// Counts what found no room in the buffer of one socket.
#[derive(Debug, Default)]
pub(super) struct DropCounter {
    /// The system's number as it was read last. It begins again after four thousand million.
    last: u32,
}

impl DropCounter {
    /// Datagrams that were dropped since the last call; 0 if the system does not report them.
    pub(super) fn dropped(&mut self, socket: &UdpSocket) -> u64 {
        let Some(now) = total(socket) else { return 0 };
        u64::from(now.wrapping_sub(std::mem::replace(&mut self.last, now)))
    }
}

/// Datagrams that found no room since the socket was made; `None` if the kernel does not say.
#[cfg(target_os = "linux")]
fn total(socket: &UdpSocket) -> Option<u32> {
    use std::os::fd::AsRawFd as _;

    // Numbers of `SO_MEMINFO` (socket(7), linux/sock_diag.h): nine of 32 bits, of which the last are the drops.
    const NUMBERS: usize = 9;
    const DROPS: usize = 8;
    let mut numbers = [0_u32; NUMBERS];
    let mut length = libc::socklen_t::try_from(size_of_val(&numbers)).ok()?;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed. The kernel writes at most `length` bytes
    // to `numbers`, which is as long as that, and any bytes are valid there; it writes `length` itself. Both
    // live until the call returns, and nothing else refers to them.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            numbers.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    // Kernels before 4.12 know fewer numbers, or none.
    (result == 0 && length as usize == size_of_val(&numbers)).then_some(numbers[DROPS])
}

#[cfg(not(target_os = "linux"))]
fn total(_: &UdpSocket) -> Option<u32> {
    None
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let (reader, sender) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        sender.connect(reader.local_addr().unwrap()).unwrap();
        reader.set_nonblocking(true).unwrap();
        (reader, sender)
    }

    fn received(reader: &UdpSocket) -> u64 {
        std::iter::from_fn(|| reader.recv(&mut [0; 64]).ok()).count() as u64
    }

    #[test]
    fn what_found_no_room_is_counted_to_the_last_one() {
        let (reader, sender) = pair();
        // As little as there can be.
        rustix::net::sockopt::set_socket_recv_buffer_size(&reader, 1).unwrap();
        let mut drops = DropCounter::default();
        assert_eq!(drops.dropped(&reader), 0);
        for round in 1..=2 {
            for _ in 0..1000 {
                sender.send(b"/go\0,\0\0\0").unwrap();
            }
            let dropped = drops.dropped(&reader);
            assert!(dropped > 0, "round {round}");
            assert_eq!(received(&reader) + dropped, 1000, "round {round}");
            assert_eq!(drops.dropped(&reader), 0, "they are counted once");
        }
    }

    #[test]
    fn the_buffer_is_as_large_as_is_allowed() {
        let allowed = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse::<usize>().unwrap();
        let (reader, _) = pair();
        enlarge(&reader);
        // The kernel doubles it, for what it needs itself.
        let size = rustix::net::sockopt::socket_recv_buffer_size(&reader).unwrap();
        assert!(size >= 2 * allowed.min(BUFFER_BYTES), "{size} of {allowed}");
    }
}
