//! The host as an MCP server: agents list and call the tools that features contribute, and read what the
//! host knows.
//!
//! The protocol is rmcp's; every revision that it knows is spoken. A call goes through the same gate as
//! any other. Nothing here applies a plan or agrees to anything: what a tool proposes waits for a
//! person, and tools that send to devices say that a person has to call them.

pub(super) mod http;
pub(super) mod socket;

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::control::caller::Caller;
use crate::control::gate::{ToolError, ToolRequest, ToolView};
use crate::feature::descriptor::Tier;
use crate::host::Host;

/// What an agent is told first.
const INSTRUCTIONS: &str = "Conductor maps what controllers (MIDI, gamepad, OSC, Art-Net) send to actions. Tools that \
    change the configuration only propose: they answer with a plan, which a person looks at and applies with \
    `conductor plan apply`. Look before you propose: conductor_get_modes, conductor_list_mappings.";

/// One client's view of the host.
struct Server {
    /// Weak, so that a client that stays does not keep a stopping host alive.
    host: Weak<Host>,
    /// Its place among the clients, where places are counted by servers.
    _place: Option<OwnedSemaphorePermit>,
}

impl Server {
    fn new(host: Weak<Host>, place: Option<OwnedSemaphorePermit>) -> Self {
        Self { host, _place: place }
    }

    fn host(&self) -> Result<Arc<Host>, ErrorData> {
        self.host.upgrade().ok_or_else(|| ErrorData::internal_error("the host is stopping", None))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build());
        config.server_info = Implementation::new("conductor", env!("CARGO_PKG_VERSION"));
        config.instructions = Some(INSTRUCTIONS.into());
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.host()?.tools().into_iter().map(tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let host = self.host()?;
        let asked = ToolRequest { args: request.arguments.unwrap_or_default(), confirmed: false };
        let (progress, mut steps) = tokio::sync::mpsc::unbounded_channel();
        let token = context.meta.get_progress_token();
        let on_progress = move |done: f32, message: String| {
            let _ = progress.send((done, message));
        };
        let client = context.client_info();
        let caller = Caller::mcp(client.as_ref().map(|client| client.name.as_str()));
        let call = host.call_tool(&caller, &request.name, asked, context.ct.clone(), Arc::new(on_progress));
        let tell = async {
            while let Some((done, message)) = steps.recv().await {
                if let Some(token) = &token {
                    let step = ProgressNotificationParam::new(token.clone(), f64::from(done)).with_total(1.0);
                    // A client that is gone takes its call with it.
                    let _ = context.peer.notify_progress(step.with_message(message)).await;
                }
            }
        };
        // The call owns the sender, so the steps end with it.
        let (answer, ()) = tokio::join!(call, tell);
        match answer {
            Ok(answer) => {
                let mut result = match answer.result {
                    Value::Object(object) => CallToolResult::structured(Value::Object(object)),
                    other => CallToolResult::success(vec![ContentBlock::text(other.to_string())]),
                };
                result.content.extend(answer.remarks.into_iter().map(ContentBlock::text));
                Ok(result.into())
            }
            Err(error @ ToolError::Unknown { .. }) => Err(ErrorData::invalid_params(error.to_string(), None)),
            Err(error @ ToolError::NeedsConfirmation(_)) => {
                let how = format!("{error}; they can call it with `conductor tool call {} --confirm`", request.name);
                Ok(CallToolResult::error(vec![ContentBlock::text(how)]).into())
            }
            Err(error) => Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into()),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = Page::ALL.map(|page| {
            Resource::new(page.uri(), page.name()).with_description(page.what()).with_mime_type(page.kind())
        });
        Ok(ListResourcesResult::with_all_items(resources.to_vec()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(page) = Page::ALL.into_iter().find(|page| page.uri() == request.uri) else {
            return Err(ErrorData::resource_not_found(format!("there is no resource {:?}", request.uri), None));
        };
        let text = page.text(&*self.host()?).map_err(|error| ErrorData::internal_error(error, None))?;
        let contents = ResourceContents::text(text, page.uri()).with_mime_type(page.kind());
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

fn tool(view: ToolView) -> Tool {
    let tool = view.tool;
    let annotations = ToolAnnotations::new()
        .read_only(tool.tier == Tier::ReadOnly)
        // A plan destroys nothing until a person agrees.
        .destructive(tool.tier == Tier::HardwareIo)
        .open_world(tool.tier == Tier::HardwareIo);
    let described = Tool::new(Cow::Owned(tool.name), tool.summary, schema(tool.input)).with_annotations(annotations);
    match tool.output {
        Some(output) => described.with_raw_output_schema(schema(output)),
        None => described,
    }
}

/// Registrars take schemas that are objects only.
fn schema(schema: Value) -> Arc<JsonObject> {
    Arc::new(match schema {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    })
}

/// What can be read without a tool.
#[derive(Debug, Clone, Copy)]
enum Page {
    Config,
    Status,
    Plans,
}

impl Page {
    const ALL: [Self; 3] = [Self::Config, Self::Status, Self::Plans];

    fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Status => "status",
            Self::Plans => "plans",
        }
    }

    fn uri(self) -> String {
        format!("conductor://{}", self.name())
    }

    fn what(self) -> &'static str {
        match self {
            Self::Config => "The configuration in force, as its author wrote it.",
            Self::Status => "Ports, bindings, features, the mode, and what was dropped.",
            Self::Plans => "Proposed changes that wait for a person.",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Config => "application/toml",
            Self::Status | Self::Plans => "application/json",
        }
    }

    fn text(self, host: &Host) -> Result<String, String> {
        let told = match self {
            Self::Config => return Ok(host.config()),
            Self::Status => serde_json::to_string(&host.status()),
            Self::Plans => serde_json::to_string(&host.plans().map_err(|error| error.to_string())?),
        };
        told.map_err(|error| error.to_string())
    }
}
