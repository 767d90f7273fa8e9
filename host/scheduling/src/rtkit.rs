//! Real-time priority from rtkit, a service of desktops that gives it to threads of users who have no right to take it.
//!
//! The interface is `org.freedesktop.RealtimeKit1` on the system bus; facts from rtkit's README. It refuses processes whose
//! hard limit `RLIMIT_RTTIME` is above its own, and limits priority, threads and requests of each user.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use zbus::proxy::CacheProperties;
use zbus::{Proxy, connection, proxy};

use crate::overrun::soften;

/// How long rtkit has for an answer: polkit may have to be started first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads that can wait for their turn. rtkit gives priority to 25 of a user.
const QUEUE_CAPACITY: usize = 64;

/// Asks for priority for a thread without waiting. If it is refused, the thread goes on as it is.
pub(crate) fn request(thread: u64, priority: u32) {
    static QUEUE: OnceLock<SyncSender<(u64, u32)>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (queue, requests) = sync_channel(QUEUE_CAPACITY);
        if let Err(error) = std::thread::Builder::new().name("rtkit".into()).spawn(move || serve(&requests)) {
            tracing::warn!(%error, "rtkit can't be asked for real-time priority");
        }
        queue
    });
    // A full queue, or a bus that is gone: the thread goes on with its short slice.
    let _ = queue.try_send((thread, priority));
}

/// The same, and waits for the answer.
///
/// # Errors
/// Why there is none.
pub(crate) fn take(thread: u64, priority: u32) -> Result<(), String> {
    zbus::block_on(async { make_realtime(&service().await?, thread, priority).await })
}

fn serve(requests: &Receiver<(u64, u32)>) {
    zbus::block_on(async {
        let service = match service().await {
            Ok(service) => service,
            Err(error) => return tracing::debug!("no real-time priority: {error}"),
        };
        for (thread, priority) in requests {
            if let Err(error) = make_realtime(&service, thread, priority).await {
                tracing::debug!("no real-time priority for thread {thread}: {error}");
            }
        }
    });
}

async fn service() -> Result<Proxy<'static>, String> {
    let bus = async { connection::Builder::system()?.method_timeout(ANSWER_TIMEOUT).build().await }.await;
    let bus = bus.map_err(|error| format!("the system bus can't be reached: {error}"))?;
    let proxy = async {
        proxy::Builder::<Proxy<'static>>::new(&bus)
            .destination("org.freedesktop.RealtimeKit1")?
            .path("/org/freedesktop/RealtimeKit1")?
            .interface("org.freedesktop.RealtimeKit1")?
            .cache_properties(CacheProperties::No)
            .build()
            .await
    };
    proxy.await.map_err(failed)
}

async fn make_realtime(service: &Proxy<'_>, thread: u64, priority: u32) -> Result<(), String> {
    let most_run: i64 = service.get_property("RTTimeUSecMax").await.map_err(failed)?;
    let most: i32 = service.get_property("MaxRealtimePriority").await.map_err(failed)?;
    // A desktop portal in front of an rtkit that is not there says 0, which would end this process at once.
    let hard = u64::try_from(most_run).unwrap_or_default();
    if !soften(Some(hard)) {
        return Err(format!("rtkit lets threads run for {hard} us, which is too short to be safe"));
    }
    let priority = priority.min(u32::try_from(most).unwrap_or_default());
    service.call_method("MakeThreadRealtime", &(thread, priority)).await.map(drop).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("rtkit: {error}")
}
