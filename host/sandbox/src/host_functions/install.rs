//! Installing: the context that `install` is lent, and the registrars.

use wasmtime::component::Resource;

use crate::bindings::Error;
use crate::bindings::imports::{
    action_registrar, chat, chat_hook_registrar, hook_registrar, install, provider_registrar, skill_registrar,
    task_registrar, tool_registrar, types,
};
use crate::handles::{
    ActionRegistrar, ChatHookRegistrar, Context, HookRegistrar, ProviderRegistrar, SkillRegistrar, TaskRegistrar,
    ToolRegistrar,
};
use crate::registrations::Band;
use crate::state::InstanceState;
use conductor_package::capability::CapabilityKind;
use conductor_package::descriptor::HookPoint;

impl types::Host for InstanceState {}
impl chat::Host for InstanceState {}
impl install::Host for InstanceState {}

impl install::HostContext for InstanceState {
    fn feature_id(&mut self, context: Resource<Context>) -> wasmtime::Result<String> {
        self.table.get(&context)?;
        Ok(self.facts.descriptor.id.as_str().to_owned())
    }

    fn drop(&mut self, context: Resource<Context>) -> wasmtime::Result<()> {
        self.table.delete(context)?;
        Ok(())
    }
}

impl InstanceState {
    /// Opens a registrar while an installation is under way, where something is declared for it.
    fn open_registrar<T: Send + 'static>(
        &mut self,
        context: &Resource<Context>,
        declared: bool,
        what: &str,
        registrar: T,
    ) -> wasmtime::Result<Result<Resource<T>, Error>> {
        self.table.get(context)?;
        if !declared {
            return Ok(Err(Error::Denied(format!("the descriptor declares no {what}"))));
        }
        Ok(Ok(self.table.push(registrar)?))
    }

    /// Registers under an open registrar.
    fn with_registrar<T: 'static>(
        &mut self,
        registrar: &Resource<T>,
        register: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(registrar)?;
        Ok(register(self).map_err(Error::Invalid))
    }
}

impl action_registrar::Host for InstanceState {}

impl action_registrar::HostRegistrar for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<ActionRegistrar>, Error>> {
        let declared = self.facts.declares("action");
        self.open_registrar(&context, declared, "action", ActionRegistrar)
    }

    fn register(
        &mut self,
        registrar: Resource<ActionRegistrar>,
        name: String,
        schema: String,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.with_registrar(&registrar, |state| {
            let Self { registered, facts, .. } = state;
            registered.action(&facts.descriptor, name, &schema)
        })
    }

    fn drop(&mut self, registrar: Resource<ActionRegistrar>) -> wasmtime::Result<()> {
        self.table.delete(registrar)?;
        Ok(())
    }
}

impl tool_registrar::Host for InstanceState {}

impl tool_registrar::HostRegistrar for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<ToolRegistrar>, Error>> {
        let declared = self.facts.declares("tool");
        self.open_registrar(&context, declared, "tool", ToolRegistrar)
    }

    fn register(
        &mut self,
        registrar: Resource<ToolRegistrar>,
        name: String,
        input: String,
        output: Option<String>,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.with_registrar(&registrar, |state| {
            let Self { registered, facts, .. } = state;
            registered.tool(&facts.descriptor, name, &input, output.as_deref())
        })
    }

    fn drop(&mut self, registrar: Resource<ToolRegistrar>) -> wasmtime::Result<()> {
        self.table.delete(registrar)?;
        Ok(())
    }
}

impl hook_registrar::Host for InstanceState {}

impl hook_registrar::HostRegistrar for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<HookRegistrar>, Error>> {
        let declared = self.facts.declares("hook");
        self.open_registrar(&context, declared, "hook", HookRegistrar)
    }

    fn register(
        &mut self,
        registrar: Resource<HookRegistrar>,
        point: hook_registrar::Point,
        band: hook_registrar::Band,
    ) -> wasmtime::Result<Result<(), Error>> {
        use hook_registrar::Point;
        let point = match point {
            Point::PreToolCall => HookPoint::PreToolCall,
            Point::PostToolCall => HookPoint::PostToolCall,
            Point::Events => HookPoint::Events,
            Point::PortChange => HookPoint::PortChange,
            Point::ModeChange => HookPoint::ModeChange,
            Point::ConfigApplied => HookPoint::ConfigApplied,
        };
        self.with_registrar(&registrar, |state| {
            let Self { registered, facts, .. } = state;
            registered.hook(&facts.descriptor, point, band.into())
        })
    }

    fn drop(&mut self, registrar: Resource<HookRegistrar>) -> wasmtime::Result<()> {
        self.table.delete(registrar)?;
        Ok(())
    }
}

impl From<hook_registrar::Band> for Band {
    fn from(band: hook_registrar::Band) -> Self {
        match band {
            hook_registrar::Band::Early => Self::Early,
            hook_registrar::Band::Normal => Self::Normal,
            hook_registrar::Band::Late => Self::Late,
        }
    }
}

impl chat_hook_registrar::Host for InstanceState {}

impl chat_hook_registrar::HostRegistrar for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<ChatHookRegistrar>, Error>> {
        let skipped = self.facts.skipped.iter().any(|skipped| skipped.kind == "hook");
        let declared = skipped || self.facts.descriptor.has_chat_hooks();
        self.open_registrar(&context, declared, "hook around what models are asked", ChatHookRegistrar)
    }

    fn register(
        &mut self,
        registrar: Resource<ChatHookRegistrar>,
        point: chat_hook_registrar::Point,
        band: hook_registrar::Band,
    ) -> wasmtime::Result<Result<(), Error>> {
        use chat_hook_registrar::Point;
        let point = match point {
            Point::PreRequest => HookPoint::PreRequest,
            Point::PostAssistant => HookPoint::PostAssistant,
            Point::TurnEnd => HookPoint::TurnEnd,
        };
        self.with_registrar(&registrar, |state| {
            let Self { registered, facts, .. } = state;
            registered.hook(&facts.descriptor, point, band.into())
        })
    }

    fn drop(&mut self, registrar: Resource<ChatHookRegistrar>) -> wasmtime::Result<()> {
        self.table.delete(registrar)?;
        Ok(())
    }
}

impl provider_registrar::Host for InstanceState {}

impl provider_registrar::HostRegistrar for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<ProviderRegistrar>, Error>> {
        let declared = self.facts.declares("provider");
        self.open_registrar(&context, declared, "provider", ProviderRegistrar)
    }

    fn register(
        &mut self,
        registrar: Resource<ProviderRegistrar>,
        name: String,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.with_registrar(&registrar, |state| {
            let Self { registered, facts, .. } = state;
            registered.provider(&facts.descriptor, name)
        })
    }

    fn drop(&mut self, registrar: Resource<ProviderRegistrar>) -> wasmtime::Result<()> {
        self.table.delete(registrar)?;
        Ok(())
    }
}

impl task_registrar::Host for InstanceState {}

impl task_registrar::HostRegistrar for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<TaskRegistrar>, Error>> {
        if let Err(error) = self.granted(CapabilityKind::BackgroundTask) {
            self.table.get(&context)?;
            return Ok(Err(error));
        }
        let declared = self.facts.declares("task");
        self.open_registrar(&context, declared, "background task", TaskRegistrar)
    }

    fn register(&mut self, registrar: Resource<TaskRegistrar>, name: String) -> wasmtime::Result<Result<(), Error>> {
        self.with_registrar(&registrar, |state| {
            let Self { registered, facts, .. } = state;
            registered.task(&facts.descriptor, name)
        })
    }

    fn drop(&mut self, registrar: Resource<TaskRegistrar>) -> wasmtime::Result<()> {
        self.table.delete(registrar)?;
        Ok(())
    }
}

impl skill_registrar::Host for InstanceState {}

impl skill_registrar::HostRegistrar for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<SkillRegistrar>, Error>> {
        let declared = self.facts.declares("skill");
        self.open_registrar(&context, declared, "skill", SkillRegistrar)
    }

    fn register(
        &mut self,
        registrar: Resource<SkillRegistrar>,
        name: String,
        text: String,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.with_registrar(&registrar, |state| {
            let Self { registered, facts, .. } = state;
            registered.skill(&facts.descriptor, name, text)
        })
    }

    fn drop(&mut self, registrar: Resource<SkillRegistrar>) -> wasmtime::Result<()> {
        self.table.delete(registrar)?;
        Ok(())
    }
}
