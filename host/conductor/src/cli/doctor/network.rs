//! Endpoints that bindings listen at: whether they are free, and which process has them if not.

use std::io;
use std::net::{TcpListener, ToSocketAddrs as _, UdpSocket};

use super::finding::Finding;
use conductor_config::Loaded;
use conductor_host::host::status::Status;
use conductor_ports::binding::{Listen, OwnPorts, Transport};
use conductor_ports::status::PortState;
use conductor_stdx::plural::plural_u64;

/// Where a binding listens, and how it is there.
#[derive(Debug, Clone)]
struct Endpoint {
    alias: String,
    /// As listings call it.
    name: String,
    state: State,
    /// What it could not read, and what the system dropped, since it was opened.
    malformed: u64,
    lost: u64,
}

#[derive(Debug, Clone)]
enum State {
    Free,
    /// The running host of this home has it.
    Ours,
    Taken(Option<Owner>),
    Failed(String, io::ErrorKind),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    pid: u32,
    program: String,
}

/// How the endpoints are.
#[derive(Debug)]
pub(super) struct NetworkCheck {
    endpoints: Vec<Endpoint>,
}

impl NetworkCheck {
    pub(super) fn gather(loaded: Option<&Loaded>, running: Option<&Status>) -> Self {
        let specs = loaded.map(|loaded| conductor_rules::bindings::plan(&loaded.config).bindings).unwrap_or_default();
        let host = running.map(|status| status.pid);
        let open = |name: &str| {
            let mut ports = running.into_iter().flat_map(|status| &status.ports.ports);
            ports.find(|found| found.port.key == name && found.state == PortState::Open)
        };
        let mut endpoints: Vec<Endpoint> = Vec::new();
        for spec in &specs {
            let OwnPorts::Endpoints { listen: Some(listen), .. } = &spec.made else { continue };
            let name = listen.name();
            // Two bindings may listen at one place.
            if endpoints.iter().any(|endpoint| endpoint.name == name) {
                continue;
            }
            let ours = open(&name);
            let (malformed, lost) = ours.map_or((0, 0), |found| (found.malformed, found.lost));
            let state = if ours.is_some() { State::Ours } else { tried(listen, host) };
            endpoints.push(Endpoint { alias: spec.alias.clone(), name, state, malformed, lost });
        }
        Self { endpoints }
    }

    pub(super) fn judge(&self) -> Vec<Finding> {
        const ABOUT: &str = "network";
        let judge = |Endpoint { alias, name, state, .. }: &Endpoint| match state {
            State::Free => Finding::ok(ABOUT, format!("{name} is free for {alias}")),
            State::Ours => Finding::ok(ABOUT, format!("{name} is {alias}: the running host listens there")),
            State::Taken(owner) => {
                let (who, mend) = match owner {
                    Some(Owner { pid, program }) => {
                        (format!("{program} (process {pid})"), format!("end {program}, or give {alias} another port"))
                    }
                    None => (
                        "another program".to_owned(),
                        format!("`sudo ss -lunpt` says which one; end it, or give {alias} another port"),
                    ),
                };
                Finding::trouble(ABOUT, format!("{name}, where {alias} listens, is taken by {who}"), mend)
            }
            State::Failed(why, kind) => {
                let mend = match kind {
                    io::ErrorKind::PermissionDenied => "take a port from 1024 on: those below are for root",
                    io::ErrorKind::AddrNotAvailable => "name an address that this machine has (`ip address`)",
                    _ => "name an address of this machine, such as 127.0.0.1 or 0.0.0.0",
                };
                Finding::trouble(ABOUT, format!("{name}, where {alias} listens, can't be used: {why}"), mend)
            }
        };
        self.endpoints.iter().flat_map(|endpoint| [Some(judge(endpoint)), missed(endpoint)]).flatten().collect()
    }
}

/// What came to an endpoint and was of no use; `None` if nothing was.
fn missed(Endpoint { alias, name, malformed, lost, .. }: &Endpoint) -> Option<Finding> {
    let (what, mend) = match (malformed, lost) {
        (0, 0) => return None,
        (malformed, 0) => (
            format!("{} for {alias} ({name}) made no sense", plural_u64(*malformed, "message")),
            "see that what sends there speaks the binding's protocol and transport (UDP, or TCP with SLIP)",
        ),
        (_, lost) => (
            format!(
                "the system dropped {} for {alias} ({name}): they came faster than they were read",
                plural_u64(*lost, "datagram")
            ),
            "send less at once; or allow a larger buffer: `sudo sysctl -w net.core.rmem_max=4194304`, then start the host again",
        ),
    };
    Some(Finding::warning("network", what, mend))
}

/// Binds the endpoint for a moment.
fn tried(listen: &Listen, host: Option<u32>) -> State {
    let addresses = (listen.at.host.as_str(), listen.at.port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    let bound = addresses.and_then(|addresses| match listen.transport {
        Transport::Udp => UdpSocket::bind(addresses.as_slice()).map(drop),
        Transport::Tcp => TcpListener::bind(addresses.as_slice()).map(drop),
    });
    match bound {
        Ok(()) => State::Free,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match owner(listen.at.port, listen.transport) {
            Some(owner) if Some(owner.pid) == host => State::Ours,
            owner => State::Taken(owner),
        },
        Err(error) => State::Failed(error.to_string(), error.kind()),
    }
}

/// Who has a port, as far as this user may know.
#[cfg(target_os = "linux")]
fn owner(port: u16, transport: Transport) -> Option<Owner> {
    let tables = match transport {
        Transport::Udp => ["/proc/net/udp", "/proc/net/udp6"],
        Transport::Tcp => ["/proc/net/tcp", "/proc/net/tcp6"],
    };
    let inodes: Vec<u64> = tables
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| sockets_at(&table, port, transport))
        .collect();
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find_map(|pid| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let targets = open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        let mut targets = targets.filter_map(|target| target.to_str().map(str::to_owned));
        targets.any(|target| links.contains(&target)).then(|| {
            let program = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            Owner { pid, program: program.trim().to_owned() }
        })
    })
}

#[cfg(not(target_os = "linux"))]
fn owner(_: u16, _: Transport) -> Option<Owner> {
    None
}

/// The inodes of the sockets in a table of `/proc/net` that are bound to a port; of TCP, those that listen.
#[cfg(target_os = "linux")]
fn sockets_at(table: &str, port: u16, transport: Transport) -> Vec<u64> {
    const LISTENING: &str = "0A";
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (_, bound) = local.rsplit_once(':')?;
        let right = u16::from_str_radix(bound, 16) == Ok(port) && (transport == Transport::Udp || *state == LISTENING);
        right.then(|| inode.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(socket).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use conductor_ports::status::{DiscoveredPort, PortsStatus};
    use conductor_ports::{Direction, PortInfo, Protocol};
    use std::net::SocketAddr;

    /// An address that is bound for the time of a test.
    fn taken() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        (socket, at)
    }

    fn facts(text: &str) -> NetworkCheck {
        let loaded = conductor_config::parse(text, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
        NetworkCheck::gather(Some(&loaded), None)
    }

    fn osc(port: u16) -> String {
        format!("[[bindings]]\nalias = \"desk\"\nprotocol = \"osc\"\ninput = {{ port = {port} }}\n")
    }

    #[test]
    fn who_has_a_port_is_named() {
        let (socket, at) = taken();
        let found = facts(&osc(at.port())).judge();
        assert_eq!(found[0].level, Level::Trouble, "{found:?}");
        if cfg!(target_os = "linux") {
            assert!(found[0].what.contains(&format!("(process {})", std::process::id())), "{found:?}");
        }
        drop(socket);
        assert_eq!(facts(&osc(at.port())).judge()[0].level, Level::Ok);
        assert!(facts("").judge().is_empty());
    }

    #[test]
    fn what_the_running_host_has_is_not_taken() {
        let (_socket, at) = taken();
        let loaded = conductor_config::parse(&osc(at.port()), "c.toml").unwrap();
        let judged = |ports: Vec<DiscoveredPort>| {
            let ports = PortsStatus { ports, ..PortsStatus::default() };
            NetworkCheck::gather(Some(&loaded), Some(&Status { pid: 1, ports, ..Status::default() })).judge()
        };
        let key = at.to_string();
        let listed = DiscoveredPort::ignored(PortInfo::new(&key, &key, "osc", Protocol::Osc, Direction::Input));
        let open = DiscoveredPort { state: PortState::Open, ..listed };
        assert_eq!(judged(vec![open.clone()])[0].level, Level::Ok);
        let found = judged(vec![DiscoveredPort { malformed: 3, lost: 12, ..open }]);
        assert_eq!(found[1].level, Level::Warning, "{found:?}");
        assert!(found[1].what.contains("dropped 12 datagrams for desk"), "{found:?}");
        assert_eq!(judged(Vec::new())[0].level, Level::Trouble);
    }

    #[test]
    fn an_address_that_is_not_here_is_told() {
        let state = State::Failed("no".into(), io::ErrorKind::AddrNotAvailable);
        let endpoint = Endpoint { alias: "desk".into(), name: "192.0.2.1:1".into(), state, malformed: 0, lost: 0 };
        let found = NetworkCheck { endpoints: vec![endpoint] }.judge();
        assert_eq!(found[0].level, Level::Trouble);
        assert!(found[0].mend.as_ref().unwrap().contains("ip address"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sockets_are_read_from_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            1: 0100007F:1936 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4242 2 0 0\n\
            2: 0100007F:1936 00000000:0000 01 00000000:00000000 00:00000000 00000000     0        0 4243 2 0 0\n\
            garbage\n";
        assert_eq!(sockets_at(table, 6454, Transport::Udp), [4242, 4243]);
        assert_eq!(sockets_at(table, 6454, Transport::Tcp), Vec::<u64>::new());
        assert_eq!(sockets_at(&table.replace(" 07 ", " 0A "), 6454, Transport::Tcp), [4242]);
    }
}
