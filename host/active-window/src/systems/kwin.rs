//! The active window under KWin, KDE's compositor. It shows no Wayland client the windows of others, but runs
//! scripts that know them (<https://develop.kde.org/docs/plasma/kwin/api/>). Ours, `kwin.js`, calls us over the
//! session's bus whenever another window is active, or the active one has another title.
//!
//! A host that is killed leaves its script behind, which calls an unused address until KWin ends.

use std::convert::Infallible;
use std::future::Future;
use std::io::Write as _;
use std::pin::pin;
use std::time::Duration;
use std::{env, process};

use anyhow::{Context as _, Result, bail};
use async_io::{Timer, block_on};
use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use tempfile::NamedTempFile;
use zbus::fdo::DBusProxy;
use zbus::message::Type;
use zbus::names::OwnedUniqueName;
use zbus::{Connection, MatchRule, Message, MessageStream, connection};

use super::display::{End, WatchError, is_wayland};
use super::names::{application_id, program};
use super::{ActiveWindow, Application};

/// KWin's name on the bus, the bus's own, and what the bus says when a name moves.
const KWIN: &str = "org.kde.KWin";
const DBUS: &str = "org.freedesktop.DBus";
const OWNER_CHANGED: &str = "NameOwnerChanged";

/// How long KWin may take to answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Reports the active window until the watch ends.
///
/// # Errors
/// Why KWin does not report it, or no longer does; [`WatchError::NoSuchDisplay`] if there is no KWin.
pub(super) fn follow(end: &End, notify: &mut dyn FnMut(ActiveWindow)) -> Result<(), WatchError> {
    if !is_wayland() {
        return Err(WatchError::NoSuchDisplay);
    }
    block_on(async {
        let Some(loaded) = unless_over(end, Script::load()).await.map_err(|why| WatchError::Because(message(&why)))?
        else {
            return Ok(());
        };
        let (mut script, front) = loaded.ok_or(WatchError::NoSuchDisplay)?;
        notify(front);
        let followed = unless_over(end, script.follow(notify)).await;
        script.unload().await;
        followed.map(|_| ()).map_err(|why| WatchError::Lost(message(&why)))
    })
}

/// The result of `work`; `None` if the watch ends before.
async fn unless_over<T>(end: &End, work: impl Future<Output = Result<T>>) -> Result<Option<T>> {
    match select(pin!(end.over()), pin!(work)).await {
        Either::Left((over, _)) => Ok(over.map(|()| None)?),
        Either::Right((done, _)) => done.map(Some),
    }
}

fn message(why: &anyhow::Error) -> String {
    format!("KWin does not report which application is in front: {why:#}")
}

/// Our script in KWin.
struct Script {
    bus: Connection,
    kwin: OwnedUniqueName,
    name: String,
    /// What comes over the bus.
    messages: MessageStream,
}

impl Script {
    /// Has KWin load the script and run it, and returns its first report; `None` if there is no KWin.
    async fn load() -> Result<Option<(Self, ActiveWindow)>> {
        let opened = async { connection::Builder::session()?.method_timeout(REPLY_TIMEOUT).build().await };
        let Ok(bus) = opened.await else { return Ok(None) };
        let names = DBusProxy::new(&bus).await?;
        let messages = MessageStream::from(&bus);
        let moves = MatchRule::builder().msg_type(Type::Signal).sender(DBUS)?.member(OWNER_CHANGED)?.add_arg(KWIN)?;
        names.add_match_rule(moves.build()).await?;
        let Ok(kwin) = names.get_name_owner(KWIN.try_into()?).await else { return Ok(None) };

        let text = written(bus.unique_name().map_or("", |name| name.as_str()))?;
        let path = text.path().to_str().context("the path of the folder for temporary files is no text")?;
        let mut script = Self { bus, kwin, name: format!("conductor-active-window-{}", process::id()), messages };
        // One may be there of a host that was killed and had this number.
        script.unload().await;
        script.call("loadScript", &(path, &script.name)).await?;
        script.call("start", &()).await?;
        // It reports the active window as soon as it runs; until then its text is read.
        let front = match select(pin!(script.next()), Timer::after(REPLY_TIMEOUT)).await {
            Either::Left((front, _)) => front?,
            Either::Right(_) => bail!("it does not run the script that reports it"),
        };
        Ok(Some((script, front)))
    }

    /// Passes on what the script reports, until KWin ends.
    async fn follow(&mut self, notify: &mut dyn FnMut(ActiveWindow)) -> Result<Infallible> {
        loop {
            notify(self.next().await?);
        }
    }

    /// The script's next report.
    async fn next(&mut self) -> Result<ActiveWindow> {
        loop {
            let message = self.messages.next().await.context("the bus is gone")??;
            let header = message.header();
            let sender = header.sender().map_or("", |sender| sender.as_str());
            let member = header.member().map_or("", |member| member.as_str());
            match (message.message_type(), member) {
                (Type::Signal, OWNER_CHANGED) if sender == DBUS => bail!("it has ended"),
                (Type::MethodCall, "IsInFront") if sender == self.kwin.as_str() => {
                    self.bus.reply(&header, &()).await?;
                    return Ok(front(message.body().deserialize()?));
                }
                // Any program on the bus can call this service.
                (Type::MethodCall, _) => {
                    let refused = ("org.freedesktop.DBus.Error.AccessDenied", "only KWin knows what is in front");
                    self.bus.reply_error(&header, refused.0, &refused.1).await?;
                }
                _ => {}
            }
        }
    }

    /// Takes the script out of KWin, if it is there.
    async fn unload(&self) {
        if let Err(error) = self.call("unloadScript", &(&self.name)).await {
            tracing::debug!("KWin did not unload the script {}: {error}", self.name);
        }
    }

    async fn call<B: serde::Serialize + zbus::zvariant::DynamicType>(
        &self,
        method: &str,
        body: &B,
    ) -> zbus::Result<Message> {
        self.bus.call_method(Some(&self.kwin), "/Scripting", Some("org.kde.kwin.Scripting"), method, body).await
    }
}

/// The script's file, with the address that it calls. Only the user who runs the desktop can read it.
fn written(listener: &str) -> std::io::Result<NamedTempFile> {
    let folder = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, Into::into);
    let mut file = tempfile::Builder::new().prefix("conductor-active-window-").suffix(".js").tempfile_in(folder)?;
    write!(file, "const listener = \"{listener}\";\n{}", include_str!("kwin.js"))?;
    Ok(file)
}

/// The window that the script reports: its desktop file (an application id, under Wayland), class, and instance, its
/// title, its process. All are empty if none is active.
fn front((id, class, instance, title, pid): (String, String, String, String, String)) -> ActiveWindow {
    let program = pid.parse().ok().and_then(program).unwrap_or_default();
    let names = application_id(&id).into_iter().chain(application_id(&class)).chain([instance, program]);
    Application::named(names, title).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_goes_by_its_desktop_file_its_class_and_its_program() {
        let of = |window: [&str; 5]| {
            let [id, class, instance, title, pid] = window.map(str::to_owned);
            front((id, class, instance, title, pid))
        };
        let ActiveWindow::Application(paint) = of(["org.kde.paint", "paint", "Easel", "a.png", ""]) else { panic!() };
        assert_eq!(
            (paint.names, paint.title.as_str()),
            (["paint", "org.kde.paint", "Easel"].map(str::to_owned).to_vec(), "a.png")
        );
        let here = process::id().to_string();
        let ActiveWindow::Application(test) = of(["", "", "", "", &here]) else { panic!() };
        assert!(!test.name().is_empty());
        assert_eq!(of(["", "", "", "", ""]), ActiveWindow::Nothing);
        assert_eq!(of(["", "", "", "", "no number"]), ActiveWindow::Nothing);
    }
}
