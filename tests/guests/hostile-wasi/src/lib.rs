//! What a component asks of WASI, in the way that an argument of the tool says.

use conductor_feature::hook_registrar::{Band, Point, Registrar};
use conductor_feature::{
    Context, Decision, Error, Invocation, Lifecycle, ReadOnlyTools, Reader, ToolCall, ToolHooks, tool_registrar,
};
use serde_json::{Value, json};
use wasip2::cli::{environment, exit, stderr, stdin, stdout};
use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::filesystem::preopens;
use wasip2::random::random;
use wasip2::sockets::network::IpAddressFamily;
use wasip2::sockets::{instance_network, ip_name_lookup, tcp_create_socket, udp_create_socket};

struct Hostile;

const HOUR: u64 = 3_600_000_000_000;

impl Lifecycle for Hostile {
    fn install(ctx: &Context) -> Result<(), Error> {
        Registrar::open(ctx)?.register(Point::PreToolCall, Band::Late)?;
        tool_registrar::Registrar::open(ctx)?.register("look", "{}", None)
    }
}

impl ReadOnlyTools for Hostile {
    fn call(_: String, args: String, _: &Invocation, _: &Reader) -> Result<String, Error> {
        let args: Value = serde_json::from_str(&args).unwrap_or_default();
        let found = match args["how"].as_str().unwrap_or_default() {
            "world" => json!({
                "arguments": environment::get_arguments(),
                "variables": environment::get_environment(),
                "folder": environment::initial_cwd(),
                "folders": preopens::get_directories().len(),
                "input": format!("{:?}", stdin::get_stdin().blocking_read(100)),
            }),
            "sockets" => json!({
                "tcp": format!("{:?}", tcp_create_socket::create_tcp_socket(IpAddressFamily::Ipv4).err()),
                "udp": format!("{:?}", udp_create_socket::create_udp_socket(IpAddressFamily::Ipv4).err()),
                "name": format!("{:?}", ip_name_lookup::resolve_addresses(
                    &instance_network::instance_network(), "localhost").err()),
            }),
            "time" => json!({ "wall": wall_clock::now().seconds, "random": random::get_random_bytes(16).len() }),
            "print" => {
                let (out, err) = (stdout::get_stdout(), stderr::get_stderr());
                out.blocking_write_and_flush(b"first ").map_err(|error| Error::Failed(error.to_string()))?;
                // Another stream to the same place goes on in the same line.
                let again = stdout::get_stdout();
                again
                    .blocking_write_and_flush(b"line\nsecond\x1b[2J\n")
                    .map_err(|error| Error::Failed(error.to_string()))?;
                err.blocking_write_and_flush(b"no end of line").map_err(|error| Error::Failed(error.to_string()))?;
                json!("printed")
            }
            "flood" => {
                let out = stdout::get_stdout();
                for line in 0..10_000 {
                    let text = format!("{line} {}\n", "x".repeat(2_000));
                    out.blocking_write_and_flush(text.as_bytes()).map_err(|error| Error::Failed(error.to_string()))?;
                }
                json!("printed")
            }
            "hoard" => json!((0..2000).map(|_| monotonic_clock::subscribe_duration(HOUR)).collect::<Vec<_>>().len()),
            "randomness" => json!(random::get_random_bytes(1 << 20).len()),
            "exit" => {
                exit::exit(Ok(()));
                json!("it goes on")
            }
            "wait" => {
                monotonic_clock::subscribe_duration(args["ms"].as_u64().map_or(HOUR, |ms| ms * 1_000_000)).block();
                json!("waited")
            }
            "loop" => loop {
                std::hint::black_box(());
            },
            "trap" => std::process::abort(),
            _ => json!("done"),
        };
        Ok(found.to_string())
    }
}

impl ToolHooks for Hostile {
    fn before_call(call: ToolCall) -> Decision {
        let args: Value = serde_json::from_str(&call.args).unwrap_or_default();
        if args["before"] == "wait" {
            monotonic_clock::subscribe_duration(HOUR).block();
        }
        Decision::Proceed
    }

    fn after_call(_: ToolCall, _: Option<String>) -> Option<String> {
        None
    }
}

conductor_feature::feature!(Hostile, "../feature.toml", [read_only_tools, tool_hooks]);
