//! A socket that says when each datagram reached it.
//!
//! The system notes the moment while the sender hands the datagram over. How late the thread wakes that waits for it is no part
//! of that: one that has just sent something waits its turn again, beside threads that are busy for up to 4 ms.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

/// A datagram that came.
#[derive(Debug, Clone, Copy)]
pub struct Stamped {
    /// How many bytes it has.
    pub length: usize,
    /// When it reached the socket, since 1970 by the system's clock.
    pub at: Duration,
}

pub use self::system::{enable, receive};

#[cfg(target_os = "linux")]
mod system {
    use std::io::IoSliceMut;
    use std::os::fd::AsRawFd as _;

    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
    use nix::sys::time::TimeSpec;

    use super::{Duration, Stamped, UdpSocket, io};

    /// Has the system note when datagrams come.
    pub fn enable(socket: &UdpSocket) -> io::Result<()> {
        Ok(setsockopt(socket, sockopt::ReceiveTimestampns, &true)?)
    }

    /// Waits for the next datagram, as long as the socket waits for one.
    pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Stamped> {
        let mut parts = [IoSliceMut::new(buffer)];
        let mut control = nix::cmsg_space!(TimeSpec);
        let came = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
        let at = came.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
            _ => None,
        });
        let at = at.ok_or_else(|| io::Error::other("the system did not note when it came"))?;
        Ok(Stamped { length: came.bytes, at })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::SystemTime;

    use super::{Duration, Stamped, UdpSocket, io};

    /// Other systems note nothing.
    pub fn enable(_: &UdpSocket) -> io::Result<()> {
        Ok(())
    }

    /// Waits for the next datagram; the moment is when this thread has it.
    pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Stamped> {
        let length = socket.recv(buffer)?;
        let at = SystemTime::UNIX_EPOCH.elapsed().map_err(io::Error::other)?;
        Ok(Stamped { length, at })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_moment_is_when_it_came_and_not_when_it_was_taken() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        enable(&socket).expect("Linux has this option");
        let before = SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970");
        socket.send_to(b"one", socket.local_addr().expect("an address")).expect("it is sent");
        let after = SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970");
        let Stamped { length, at } = receive(&socket, &mut [0; 8]).expect("it came");
        assert!(length == 3 && before <= at && at <= after, "{before:?} {at:?} {after:?}");
    }
}
