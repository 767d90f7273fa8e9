//! Which interfaces of WASI a package may import.

/// The packages that are offered, of WASI 0.2. There is no `wasi:http`: the contract has its own.
const OFFERED: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];

/// Whether this import, such as `wasi:io/poll@0.2.6`, is of WASI and offered.
pub fn offers(import: &str) -> bool {
    import.strip_prefix("wasi:").and_then(|import| import.split_once('/')).is_some_and(|(package, interface)| {
        OFFERED.contains(&package) && interface.split_once('@').is_some_and(|(_, version)| version.starts_with("0.2."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_of_wasi() {
        for import in ["wasi:io/poll@0.2.0", "wasi:cli/stdout@0.2.6", "wasi:sockets/tcp@0.2.12"] {
            assert!(offers(import), "{import}");
        }
        for import in
            ["wasi:http/types@0.2.0", "wasi:io/poll", "wasi:io/poll@0.3.0", "wasi:nn/x@0.2.0", "io/poll@0.2.0"]
        {
            assert!(!offers(import), "{import}");
        }
    }
}
