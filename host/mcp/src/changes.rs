//! Notifications to agents that tools, resources or prompts have changed.
//!
//! Clients before 2026-07-28 are notified of lists once they are initialized, and of resources that they subscribe
//! to; those since then subscribe to all of it in one request.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Weak};

use rmcp::model::{
    PromptListChangedNotification, ResourceListChangedNotification, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter, ToolListChangedNotification,
};
use rmcp::service::SubscriptionContext;
use rmcp::{Peer, RoleServer};

use super::groups::Opened;
use super::notifications::Updates;
use super::{ClientKey, MAX_URI, resources};
use conductor_host::host::Host;
use conductor_stdx::changes::HostChange;

/// Resources that one client may subscribe to.
pub(super) const MAX_SUBSCRIPTIONS: usize = 64;

/// The resources that a client subscribes to.
#[derive(Debug, Clone, Default)]
pub(super) struct Subscribed(Arc<Mutex<HashSet<String>>>);

impl Subscribed {
    /// Adds one; false where there are too many.
    pub(super) fn add(&self, uri: String) -> bool {
        let mut all = self.0.lock();
        (all.contains(&uri) || all.len() < MAX_SUBSCRIPTIONS) && uri.len() <= MAX_URI && {
            all.insert(uri);
            true
        }
    }

    pub(super) fn remove(&self, uri: &str) {
        self.0.lock().remove(uri);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }
}

/// What a client of 2026-07-28 is notified of: of the resources that it asked for those that exist.
pub(super) fn accepted(wanted: &SubscriptionFilter, exists: impl Fn(&str) -> bool) -> SubscriptionFilter {
    let mut accepted = wanted.clone();
    if let Some(uris) = &mut accepted.resource_subscriptions {
        uris.retain(|uri| uri.len() <= MAX_URI);
        uris.truncate(MAX_SUBSCRIPTIONS);
        uris.retain(|uri| exists(uri));
    }
    accepted
}

/// Turns changes of the host into notifications.
struct Notifier {
    host: Weak<Host>,
    /// The tools of the last notification.
    tools: u64,
}

impl Notifier {
    fn new(host: Weak<Host>) -> Self {
        let mut notifier = Self { host, tools: 0 };
        notifier.tools = notifier.current_tools();
        notifier
    }

    fn current_tools(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for view in self.host.upgrade().map(|host| host.tools()).unwrap_or_default() {
            (view.tool.name, view.tool.summary, view.tool.input, view.tool.output).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The notifications for a client that is subscribed to these resources.
    fn notifications(&mut self, new: HostChange, subscribed: &[String]) -> Vec<ServerNotification> {
        let mut notifications = Vec::new();
        if matches!(new, HostChange::Config | HostChange::Everything) {
            let tools = self.current_tools();
            if tools != self.tools {
                self.tools = tools;
                notifications.push(ToolListChangedNotification::default().into());
            }
        }
        if matches!(new, HostChange::Prompts | HostChange::Everything) {
            notifications.push(PromptListChangedNotification::default().into());
        }
        if matches!(new, HostChange::Plans | HostChange::Config | HostChange::Everything) {
            notifications.push(ResourceListChangedNotification::default().into());
        }
        notifications.extend(subscribed.iter().filter(|uri| resources::is_touched(uri, new)).map(|uri| updated(uri)));
        notifications
    }
}

fn updated(uri: &str) -> ServerNotification {
    ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri)).into()
}

/// The notifications for a client that is subscribed to these resources, where features have notified of something.
fn resource_updates(updates: &Updates, subscribed: &[String]) -> Vec<ServerNotification> {
    updates.addresses(subscribed).into_iter().map(updated).collect()
}

/// Notifies a client that has initialized, until it is gone or the host stops.
pub(super) fn notify_until_closed(host: &Weak<Host>, peer: Peer<RoleServer>, subscribed: Subscribed) {
    let Some((mut changes, mut updates)) = host.upgrade().map(|host| (host.changes(), Updates::new(&host))) else {
        return;
    };
    let mut notifier = Notifier::new(Weak::clone(host));
    tokio::spawn(async move {
        loop {
            let new = tokio::select! {
                new = changes.next() => match new {
                    Some(new) => Some(new),
                    None => return,
                },
                () = updates.next() => None,
            };
            let notifications = match new {
                Some(new) => notifier.notifications(new, &subscribed.all()),
                None => resource_updates(&updates, &subscribed.all()),
            };
            for notification in notifications {
                if peer.send_notification(notification).await.is_err() && peer.is_transport_closed() {
                    return;
                }
            }
        }
    });
}

/// Sends a client the notifications that it subscribed to, until it leaves or the host stops. Its list of tools changes
/// with the groups that it opens, too.
pub(super) async fn notify_subscriber(
    host: &Weak<Host>,
    subscription: SubscriptionContext,
    client: &ClientKey,
    opened: &Opened,
) {
    let (mut opens, mut groups) = (opened.watch(), opened.of(client));
    let Some((mut changes, mut updates)) = host.upgrade().map(|host| (host.changes(), Updates::new(&host))) else {
        return;
    };
    let mut notifier = Notifier::new(Weak::clone(host));
    let uris = subscription.accepted().resource_subscriptions.clone().unwrap_or_default();
    loop {
        let notifications = tokio::select! {
            new = changes.next() => match new {
                Some(new) => notifier.notifications(new, &uris),
                None => return,
            },
            () = updates.next() => resource_updates(&updates, &uris),
            // The sender is there as long as `opened` is.
            _ = opens.changed() => {
                let now = opened.of(client);
                if now != groups {
                    groups = now;
                    // What it did not ask for is left out there.
                    let _ = subscription.sink().send(ToolListChangedNotification::default().into()).await;
                }
                continue;
            }
            () = subscription.cancelled() => return,
        };
        for notification in notifications {
            // What it did not ask for is left out there.
            let _ = subscription.sink().send(notification).await;
        }
    }
}
