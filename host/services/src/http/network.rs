//! The network below the HTTP client: resolving names and exchanging requests for responses.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{CONTENT_LENGTH, HeaderMap};
use reqwest::{Client, Method, Url};
use tokio_stream::{Stream, StreamExt as _};

/// How long one address may take to accept a connection before the next one is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a [`Network`] answers later.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How requests leave this machine. Tests put their own here, so that nothing has to leave.
pub trait Network: fmt::Debug + Send + Sync {
    /// All addresses of a host name.
    ///
    /// # Errors
    /// The resolver's error.
    fn resolve<'a>(&'a self, host: &'a str) -> Answer<'a, io::Result<Vec<IpAddr>>>;

    /// Sends a request and waits for the head of the response. Dials the request's addresses and
    /// nothing else, follows nothing, and ends the exchange when the answer, or later the body, is
    /// dropped.
    ///
    /// # Errors
    /// See [`NetworkError`].
    fn exchange(&self, request: Outgoing) -> Answer<'_, Result<Incoming, NetworkError>>;
}

/// A request that was let through.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The only addresses that may be dialled; at least one.
    pub addresses: Vec<SocketAddr>,
    /// The method.
    pub method: Method,
    /// Where to; its host is for the certificate and the `host` header, not for resolving.
    pub url: Url,
    /// All headers but those that steer the connection. A secret's is marked as sensitive.
    pub headers: HeaderMap,
    /// What to send.
    pub body: Vec<u8>,
}

/// A response whose body is still to come.
pub struct Incoming {
    /// The status as it came.
    pub status: u16,
    /// The headers as they came.
    pub headers: HeaderMap,
    /// The body, in pieces as they come.
    pub body: BodyStream,
}

/// A body, in pieces as they come.
pub type BodyStream = Pin<Box<dyn Stream<Item = Result<Bytes, NetworkError>> + Send>>;

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Why an exchange came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// No connection: no server answered, or without a certificate for this host.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke, or what came was not HTTP.
    #[error("{0}")]
    Broken(String),
    /// The head of the response is larger than what is read of it.
    #[error("the response's head is too large")]
    HeadTooLarge,
}

/// The operating system's resolver and sockets, with its certificates for TLS.
#[derive(Debug)]
pub struct SystemNetwork(());

impl SystemNetwork {
    /// Makes the network ready. TLS needs a cryptography provider for the whole process; it is set
    /// here unless there is one.
    pub fn new() -> Self {
        // Fails only when there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self(())
    }
}

impl Default for SystemNetwork {
    fn default() -> Self {
        Self::new()
    }
}

impl Network for SystemNetwork {
    fn resolve<'a>(&'a self, host: &'a str) -> Answer<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) })
    }

    fn exchange(&self, request: Outgoing) -> Answer<'_, Result<Incoming, NetworkError>> {
        Box::pin(async move {
            let Outgoing { addresses, method, url, headers, body } = request;
            let (sends, dialled) = (method.clone(), url.clone());
            // Reads the system's certificates from disk.
            let client = tokio::task::spawn_blocking(move || client(&dialled, &addresses))
                .await
                .map_err(|error| NetworkError::Unreachable(error.to_string()))??;
            let mut request = client.request(method, url).headers(headers);
            if !body.is_empty() {
                request = request.body(body);
            } else if [Method::POST, Method::PUT, Method::PATCH].contains(&sends) {
                // Servers that expect a body need an explicit length of 0.
                request = request.header(CONTENT_LENGTH, 0);
            }
            let response = request.send().await.map_err(explained)?;
            Ok(Incoming {
                status: response.status().as_u16(),
                headers: response.headers().clone(),
                body: Box::pin(response.bytes_stream().map(|piece| piece.map_err(explained))),
            })
        })
    }
}

/// A client for one exchange, which shares neither its pinned addresses nor its connections.
fn client(url: &Url, addresses: &[SocketAddr]) -> Result<Client, NetworkError> {
    let mut builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .http1_only()
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_TIMEOUT)
        .dns_resolver(Arc::new(Nowhere));
    if let Some(host) = url.host_str() {
        builder = builder.resolve_to_addrs(host, addresses);
    }
    if url.scheme() == "http" {
        // No certificate is needed, so none is read.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(explained)
}

/// Resolves nothing: a name without a pin goes nowhere.
#[derive(Debug)]
struct Nowhere;

impl Resolve for Nowhere {
    fn resolve(&self, name: Name) -> Resolving {
        let text = format!("{} has no checked address", name.as_str());
        Box::pin(async move { Err(io::Error::new(io::ErrorKind::NotFound, text).into()) })
    }
}

/// The error with its causes. The URL, which the feature knows, stays out.
fn explained(error: reqwest::Error) -> NetworkError {
    let unreachable = error.is_connect() || error.is_builder();
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref().is_some_and(hyper::Error::is_parse_too_large) {
            return NetworkError::HeadTooLarge;
        }
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    if unreachable { NetworkError::Unreachable(text) } else { NetworkError::Broken(text) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::thread::JoinHandle;

    use tokio::sync::oneshot;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::http::secrets::{Secret, SecretError};
    use crate::http::{
        HttpAccount, HttpClient, HttpError, HttpScope, Request, Response, SecretGrant, SecretUse, Secrets,
    };
    use conductor_package::admission::{Grantee, Provenance};

    #[derive(Debug)]
    struct OneSecret;

    impl Secrets for OneSecret {
        fn get(&self, id: &str) -> Result<Secret, SecretError> {
            Secret::new(id, "hunter2hunter2".into())
        }
    }

    /// A server on this machine that accepts one connection and has `talk` answer the request in it.
    /// Gives its port, and then the request as it came.
    fn serve(talk: impl FnOnce(TcpStream) + Send + 'static) -> (u16, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut came = Vec::new();
            let mut piece = [0; 4096];
            while !came.ends_with(b"\r\n\r\n") && !came.ends_with(b"the end") {
                let size = peer.read(&mut piece).unwrap();
                assert_ne!(size, 0, "the request ended early");
                came.extend_from_slice(&piece[..size]);
            }
            talk(peer);
            String::from_utf8(came).unwrap()
        });
        (port, server)
    }

    /// The request that the server got, when it is done. Waits aside, so that connections can close.
    async fn ended(server: JoinHandle<String>) -> String {
        tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap()
    }

    /// Waits until the other side has gone.
    fn gone(mut peer: TcpStream) {
        let mut rest = [0; 64];
        while peer.read(&mut rest).is_ok_and(|size| size > 0) {}
    }

    fn client() -> HttpClient {
        HttpClient::new(Arc::new(SystemNetwork::new()), Arc::new(OneSecret))
    }

    fn get(host: &str, port: u16) -> Request {
        Request { method: "GET".into(), url: format!("http://{host}:{port}/a?b=c"), ..Request::default() }
    }

    async fn send(client: HttpClient, request: Request, revoked: &CancellationToken) -> Result<Response, HttpError> {
        let site = request.url.split('/').nth(2).unwrap().parse().unwrap();
        let secrets = vec![SecretGrant { id: "key".into(), hosts: vec![site] }];
        let scope = HttpScope { hosts: secrets[0].hosts.clone(), secrets };
        client
            .send(
                &HttpAccount::new("project:chat", Grantee { name: "chat".into(), provenance: Provenance::Bundled }),
                &scope,
                request,
                revoked,
            )
            .await
    }

    #[tokio::test]
    async fn a_request_crosses_the_wire_and_a_redirect_is_not_followed() {
        let (port, server) = serve(|mut peer| {
            let answer = "HTTP/1.1 302 Found\r\nLocation: /b\r\nSet-Cookie: a=b\r\nX-Echo: hunter2hunter2\r\n\
                          Transfer-Encoding: chunked\r\n\r\n9\r\n<hunter2h\r\n7\r\nunter2>\r\n0\r\n\r\n";
            peer.write_all(answer.as_bytes()).unwrap();
        });
        let secret = SecretUse { id: "key".into(), header: "x-api-key".into(), prefix: "Key ".into() };
        let request = Request {
            method: "POST".into(),
            headers: vec![("x-a".into(), "b".into())],
            body: b"this is the end".to_vec(),
            secret: Some(secret),
            ..get("127.0.0.1", port)
        };
        let response = send(client(), request, &CancellationToken::new()).await.unwrap();
        let came = ended(server).await;
        let (head, body) = came.split_once("\r\n\r\n").unwrap();
        let mut lines: Vec<&str> = head.lines().collect();
        lines[1..].sort_unstable();
        let host = format!("host: 127.0.0.1:{port}");
        let expected = [
            "POST /a?b=c HTTP/1.1",
            "accept: */*",
            "content-length: 15",
            &host,
            "x-a: b",
            "x-api-key: Key hunter2hunter2",
        ];
        assert_eq!(lines, expected);
        assert_eq!(body, "this is the end");
        assert_eq!((response.status, &*response.body), (302, &b"<***>"[..]));
        assert!(response.headers.contains(&("location".into(), "/b".into())), "{response:?}");
        assert!(response.headers.contains(&("x-echo".into(), "***".into())), "{response:?}");
    }

    #[tokio::test]
    async fn localhost_is_resolved_by_the_system() {
        let (port, server) = serve(|mut peer| peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap());
        let response = send(client(), get("localhost", port), &CancellationToken::new()).await.unwrap();
        assert_eq!((response.status, response.body.len()), (204, 0));
        assert!(ended(server).await.contains(&format!("host: localhost:{port}\r\n")));
    }

    #[tokio::test]
    async fn an_empty_body_is_announced_where_one_is_expected() {
        for (method, announced) in [("POST", true), ("PUT", true), ("GET", false), ("HEAD", false), ("DELETE", false)] {
            let (port, server) = serve(|mut peer| peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap());
            let request = Request { method: method.into(), ..get("127.0.0.1", port) };
            send(client(), request, &CancellationToken::new()).await.unwrap();
            assert_eq!(ended(server).await.contains("content-length: 0\r\n"), announced, "{method}");
        }
    }

    #[tokio::test]
    async fn a_head_with_too_many_headers_is_refused() {
        let (port, server) = serve(|mut peer| {
            let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(1000));
            peer.write_all(head.as_bytes()).unwrap();
        });
        let refused = send(client(), get("127.0.0.1", port), &CancellationToken::new()).await;
        assert!(matches!(refused, Err(HttpError::Exhausted(_))), "{refused:?}");
        ended(server).await;
    }

    #[tokio::test]
    async fn a_name_is_dialled_at_its_pins_and_never_resolved_again() {
        let (port, server) = serve(|mut peer| peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap());
        // Names below `.invalid` never resolve.
        let request = Outgoing {
            addresses: vec![SocketAddr::from(([127, 0, 0, 1], port))],
            method: Method::GET,
            url: format!("http://pinned.invalid:{port}/").parse().unwrap(),
            headers: HeaderMap::new(),
            body: Vec::new(),
        };
        let network = SystemNetwork::new();
        assert_eq!(network.exchange(request.clone()).await.unwrap().status, 204);
        assert!(ended(server).await.contains(&format!("host: pinned.invalid:{port}\r\n")));
        let nowhere = network.exchange(Outgoing { addresses: Vec::new(), ..request }).await;
        assert!(matches!(nowhere, Err(NetworkError::Unreachable(_))), "{nowhere:?}");
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_cut_off() {
        let (port, server) = serve(|mut peer| {
            peer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            // Ends because the client hangs up.
            while peer.write_all(&[b'x'; 64 * 1024]).is_ok() {}
        });
        let cut = send(client(), get("127.0.0.1", port), &CancellationToken::new()).await;
        assert!(matches!(&cut, Err(HttpError::Exhausted(text)) if text.contains("4 MiB")), "{cut:?}");
        ended(server).await;
    }

    #[tokio::test]
    async fn a_server_that_hangs_is_left_when_the_time_is_up() {
        for head in [&b""[..], b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"] {
            let (port, server) = serve(move |mut peer| {
                peer.write_all(head).unwrap();
                gone(peer);
            });
            let client = client().with_timeout(Duration::from_millis(500));
            let late = send(client, get("127.0.0.1", port), &CancellationToken::new()).await;
            assert!(matches!(&late, Err(HttpError::Failed(text)) if text.contains("500ms")), "{late:?}");
            ended(server).await;
        }
    }

    #[tokio::test]
    async fn a_revoked_grant_hangs_up() {
        let (asked, was_asked) = oneshot::channel();
        let (port, server) = serve(|peer| {
            asked.send(()).unwrap();
            gone(peer);
        });
        let revoked = CancellationToken::new();
        let revoke = async {
            was_asked.await.unwrap();
            revoked.cancel();
        };
        let (done, ()) = tokio::join!(send(client(), get("127.0.0.1", port), &revoked), revoke);
        assert_eq!(done, Err(HttpError::Denied("the grant was revoked".into())));
        ended(server).await;
    }

    #[tokio::test]
    async fn what_does_not_speak_http_or_tls_is_told_apart_from_what_is_not_there() {
        let (port, server) = serve(|mut peer| peer.write_all(b"SSH-2.0-nonsense\r\n\r\n").unwrap());
        let broken = send(client(), get("127.0.0.1", port), &CancellationToken::new()).await;
        assert!(matches!(broken, Err(HttpError::Failed(_))), "{broken:?}");
        ended(server).await;

        // The server there has ended.
        let absent = send(client(), get("127.0.0.1", port), &CancellationToken::new()).await;
        assert!(matches!(absent, Err(HttpError::Unavailable(_))), "{absent:?}");

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
            String::new()
        });
        let request = Request { url: format!("https://127.0.0.1:{port}/"), ..get("", 0) };
        let plain = send(client(), request, &CancellationToken::new()).await;
        assert!(matches!(plain, Err(HttpError::Unavailable(_))), "{plain:?}");
        // A machine without any certificates did not even try.
        let _ = TcpStream::connect(("127.0.0.1", port));
        ended(server).await;
    }
}
