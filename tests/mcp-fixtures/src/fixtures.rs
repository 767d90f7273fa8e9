//! Tools, prompts and resources by the names that the suite calls them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use conductor_host::host::Host;
use conductor_mcp::Server;
use conductor_stdx::changes::HostChange;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::rounds;

/// What the addresses of the suite's resources begin with.
const SCHEME: &str = "test://";
/// A PNG of one red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV without a sound.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// Tools without arguments.
const PLAIN: &[&str] = &[
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_error_handling",
    "test_tool_with_progress",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
];

/// The host's server, and the suite's fixtures before it.
pub struct Fixtures {
    inner: Server,
    host: Weak<Host>,
    /// Whether there is one tool more.
    changed: Arc<AtomicBool>,
}

impl Fixtures {
    pub fn new(inner: Server, host: Weak<Host>) -> Self {
        Self { inner, host, changed: Arc::default() }
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn tools() -> Result<Vec<Tool>, ErrorData> {
    let tool =
        |name: &str, schema: Value| read::<Tool>(json!({ "name": name, "description": name, "inputSchema": schema }));
    let empty = || json!({ "type": "object", "properties": {} });
    let one =
        |field: &str| json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
    let mut tools: Vec<Tool> =
        PLAIN.iter().chain(rounds::TOOLS).map(|name| tool(name, empty())).collect::<Result<_, _>>()?;
    tools.push(tool("test_sampling", one("prompt"))?);
    tools.push(tool("test_elicitation", one("message"))?);
    let region =
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    tools.push(tool("test_x_mcp_header", region)?);
    tools.push(tool(
        "json_schema_2020_12_tool",
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": { "$anchor": "addressDef", "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } },
            "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" }, "email": { "type": "string" } },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] }, "else": { "required": ["email"] },
            "additionalProperties": false,
        }),
    )?);
    Ok(tools)
}

fn form(message: &str, schema: Value) -> Result<ElicitRequestParams, ErrorData> {
    read(json!({ "mode": "form", "message": message, "requestedSchema": schema }))
}

async fn elicit(context: &RequestContext<RoleServer>, params: ElicitRequestParams) -> Result<String, ErrorData> {
    let failed = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
    let said = context.peer.create_elicitation(params).await.map_err(failed)?;
    let said = serde_json::to_value(said).unwrap_or_default();
    Ok(format!("action={}, content={}", said["action"].as_str().unwrap_or_default(), said["content"]))
}

impl Fixtures {
    async fn fixture(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let pause = || tokio::time::sleep(Duration::from_millis(50));
        let argument = |name: &str| {
            let arguments = request.arguments.as_ref();
            arguments.and_then(|all| all.get(name)?.as_str()).unwrap_or_default().to_owned()
        };
        let content = |content: Value| read::<CallToolResult>(json!({ "resultType": "complete", "content": content }));
        let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
        let result = match &*request.name {
            "test_simple_text" => text("This is a simple text response for testing."),
            "test_image_content" => content(json!([image]))?,
            "test_audio_content" => content(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]))?,
            "test_embedded_resource" => {
                content(json!([{ "type": "resource", "resource": { "uri": "test://embedded-resource",
                "mimeType": "text/plain", "text": "This is an embedded resource content." } }]))?
            }
            "test_multiple_content_types" => content(json!([
                { "type": "text", "text": "Multiple content types test:" }, image,
                { "type": "resource", "resource": { "uri": "test://mixed-content-resource",
                    "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}" } },
            ]))?,
            "test_error_handling" => {
                CallToolResult::error(vec![ContentBlock::text("This tool intentionally returns an error for testing")])
            }
            "test_tool_with_logging" => {
                for step in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                    self.log(context, step).await;
                    pause().await;
                }
                text("done")
            }
            "test_logging_tool" => {
                // Nothing is logged for clients that have not set a level.
                if serde_json::to_value(&context.meta)
                    .unwrap_or_default()
                    .get("io.modelcontextprotocol/logLevel")
                    .is_some()
                {
                    self.log(context, "asked for").await;
                }
                text("done")
            }
            "test_tool_with_progress" => {
                for done in [0.0, 50.0, 100.0] {
                    if let Some(token) = context.meta.get_progress_token() {
                        let _ = context
                            .peer
                            .notify_progress(ProgressNotificationParam::new(token, done).with_total(100.0))
                            .await;
                    }
                    pause().await;
                }
                text("done")
            }
            "test_reconnection" => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                text("Reconnection test completed successfully.")
            }
            "test_sampling" => self.sample(context, &argument("prompt")).await?,
            "test_elicitation" => {
                let schema = json!({ "type": "object", "required": ["username", "email"], "properties": {
                    "username": { "type": "string", "description": "User's response" },
                    "email": { "type": "string", "description": "User's email address" } } });
                text(format!("User response: {}", elicit(context, form(&argument("message"), schema)?).await?))
            }
            "test_elicitation_sep1034_defaults" => {
                let schema = json!({ "type": "object", "properties": {
                    "name": { "type": "string", "default": "John Doe" },
                    "age": { "type": "integer", "default": 30 },
                    "score": { "type": "number", "default": 95.5 },
                    "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                    "verified": { "type": "boolean", "default": true } } });
                text(format!("Elicitation completed: {}", elicit(context, form("Please review", schema)?).await?))
            }
            "test_elicitation_sep1330_enums" => {
                let titled = |words: [&str; 3]| -> Vec<Value> {
                    let pairs = words.iter().enumerate();
                    pairs.map(|(at, title)| json!({ "const": format!("value{}", at + 1), "title": title })).collect()
                };
                let words = ["option1", "option2", "option3"];
                let schema = json!({ "type": "object", "properties": {
                    "untitledSingle": { "type": "string", "enum": words },
                    "titledSingle": { "type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"]) },
                    "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"] },
                    "untitledMulti": { "type": "array", "items": { "type": "string", "enum": words } },
                    "titledMulti": { "type": "array", "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) } } } });
                text(format!("Elicitation completed: {}", elicit(context, form("Please choose", schema)?).await?))
            }
            "test_missing_capability" => {
                let sampling = context.client_capabilities().is_some_and(|declared| declared.sampling.is_some());
                if !sampling {
                    return Err(ErrorData::missing_required_client_capability(read(json!({ "sampling": {} }))?));
                }
                text("declared")
            }
            "test_streaming_elicitation" => {
                return rounds::answer("test_input_required_result_elicitation", request, context);
            }
            "test_trigger_tool_change" => {
                self.changed.fetch_xor(true, Ordering::Relaxed);
                self.send_change(HostChange::Everything);
                text("changed")
            }
            "test_trigger_prompt_change" => {
                self.send_change(HostChange::Prompts);
                text("changed")
            }
            "json_schema_2020_12_tool" | "test_x_mcp_header" => text("ok"),
            name => return rounds::answer(name, request, context),
        };
        Ok(Some(result.into()))
    }

    fn send_change(&self, change: HostChange) {
        if let Some(host) = self.host.upgrade() {
            host.send_change(change);
        }
    }

    #[expect(deprecated, reason = "the suite for 2025-11-25 asks for it")]
    async fn log(&self, context: &RequestContext<RoleServer>, said: &str) {
        let _ = context
            .peer
            .notify_logging_message(LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(said)))
            .await;
    }

    #[expect(deprecated, reason = "the suite for 2025-11-25 asks for it")]
    async fn sample(&self, context: &RequestContext<RoleServer>, prompt: &str) -> Result<CallToolResult, ErrorData> {
        let params = read(
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }], "maxTokens": 100 }),
        )?;
        let failed = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
        let said = context.peer.create_message(params).await.map_err(failed)?;
        let said = serde_json::to_value(said).unwrap_or_default();
        Ok(text(format!("LLM response: {}", said["content"]["text"].as_str().unwrap_or_default())))
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.inner.get_info();
        info.capabilities.logging = Some(JsonObject::new());
        info
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut all = self.inner.list_tools(page, context).await?;
        all.tools.extend(tools()?);
        Ok(all)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().ok()?.into_iter().find(|tool| tool.name == name).or_else(|| self.inner.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.fixture(&request, &context).await? {
            Some(answer) => Ok(answer),
            None => self.inner.call_tool(request, context).await,
        }
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut all = self.inner.list_resources(page, context).await?;
        for uri in ["test://static-text", "test://static-binary", "test://watched-resource"] {
            all.resources.push(Resource::new(uri, uri).with_description("A fixture."));
        }
        Ok(all)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut all = self.inner.list_resource_templates(page, context).await?;
        all.resource_templates
            .push(ResourceTemplate::new("test://template/{id}/data", "template").with_description("A fixture."));
        Ok(all)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let contents = match uri {
            "test://static-text" => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
            }
            "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
            "test://watched-resource" => json!({ "uri": uri, "mimeType": "text/plain", "text": "watched" }),
            _ => match uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data")) {
                Some(id) => {
                    let text =
                        json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string();
                    json!({ "uri": uri, "mimeType": "application/json", "text": text })
                }
                None => return self.inner.read_resource(request, context).await,
            },
        };
        Ok(ReadResourceResult::new(vec![read(contents)?]).into())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut all = self.inner.list_prompts(page, context).await?;
        let prompt = |name: &str, arguments: &[&str]| {
            let arguments = arguments.iter().map(|name| PromptArgument::new(*name).with_required(true)).collect();
            Prompt::new(name, Some("A fixture."), Some(arguments))
        };
        all.prompts.extend([
            prompt("test_simple_prompt", &[]),
            prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
            prompt("test_prompt_with_image", &[]),
            prompt("test_input_required_result_prompt", &[]),
        ]);
        Ok(all)
    }

    async fn list_skills(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.inner.list_skills(page, context).await
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.inner.get_skill(request, context).await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.inner.read_resource_directory(request, context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let argument = |name: &str| {
            let arguments = request.arguments.as_ref();
            arguments.and_then(|all| all.get(name)?.as_str()).unwrap_or_default().to_owned()
        };
        let said = |content: Value| json!({ "role": "user", "content": content });
        let says = |text: &str| said(json!({ "type": "text", "text": text }));
        let messages = match request.name.as_str() {
            "test_simple_prompt" => json!([says("This is a simple prompt for testing.")]),
            "test_prompt_with_arguments" => {
                json!([says(&format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    argument("arg1"),
                    argument("arg2")
                ))])
            }
            "test_prompt_with_embedded_resource" => json!([
                said(
                    json!({ "type": "resource", "resource": { "uri": argument("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing." } })
                ),
                says("Please process the embedded resource above."),
            ]),
            "test_prompt_with_image" => json!([
                said(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
                says("Please analyze the image above."),
            ]),
            "test_input_required_result_prompt" => {
                match request.input_responses.as_ref().and_then(|all| all.get("user_context")) {
                    Some(answer) => json!([says(&format!("In the context of {}", answer["content"]["context"]))]),
                    None => {
                        let asked = rounds::ask("user_context", "What context should the prompt use?", "context");
                        return Ok(read::<InputRequiredResult>(
                            json!({ "resultType": "input_required", "inputRequests": asked }),
                        )?
                        .into());
                    }
                }
            }
            _ => return self.inner.get_prompt(request, context).await,
        };
        Ok(read::<GetPromptResult>(json!({ "resultType": "complete", "messages": messages }))?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.inner.complete(request, context).await
    }

    #[expect(deprecated, reason = "the suite for 2025-11-25 asks for it")]
    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_initialized(context).await;
    }

    #[expect(deprecated, reason = "clients before 2026-07-28 subscribe by it")]
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // The host takes no subscription to what is not its own.
        if request.uri.starts_with(SCHEME) { Ok(()) } else { self.inner.subscribe(request, context).await }
    }

    #[expect(deprecated, reason = "clients before 2026-07-28 unsubscribe by it")]
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.inner.unsubscribe(request, context).await
    }

    fn accepted_subscription_filter(&self, wanted: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.inner.accepted_subscription_filter(wanted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.inner.listen(subscription).await
    }
}
