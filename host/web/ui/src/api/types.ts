// The host's types, by the names that the shell uses: made of `docs/openapi.json` by `npm run types`.

import type { components } from './openapi'

type Schemas = components['schemas']

export type ApiErrorBody = Schemas['ApiError']
export type AuditRow = Schemas['AuditRow']
export type Applied = Schemas['Applied']
export type AskedCapability = Schemas['AskedCapability']
export type AvailableModel = Schemas['AvailableModel']
export type BindingStatus = Schemas['BindingStatus']
export type CapabilityRequest = Schemas['CapabilityRequest']
export type Confirmation = Schemas['Confirmation']
export type ConversationView = Schemas['ConversationView']
export type DiscoveredPort = Schemas['DiscoveredPort']
export type FeatureReport = Schemas['FeatureReport']
export type InstallView = Schemas['InstallView']
export type Light = Schemas['Light']
export type LockState = Schemas['LockState']
export type ModelAccess = Schemas['ModelAccess']
export type ModelHealth = Schemas['ModelHealth']
export type ModelSummary = Schemas['ModelSummary']
export type NextStep = Schemas['NextStep']
export type Overlaps = Schemas['Overlaps']
export type PlacedMapping = Schemas['PlacedMapping']
export type Plan = Schemas['Plan']
export type PlanSummary = Schemas['PlanSummary']
export type PlanView = Schemas['PlanView']
export type ProposedModel = Schemas['ProposedModel']
export type ProposedRemoval = Schemas['ProposedRemoval']
export type Protocol = Schemas['Protocol']
export type Receipt = Schemas['FeatureInstallReport']
export type Recorded = Schemas['Recorded']
export type SkillView = Schemas['SkillView']
export type SkillText = Schemas['SkillText']
export type Status = Schemas['Status']
export type StreamItem = Schemas['StreamItem']
export type ToolResult = Schemas['ToolResult']
export type ToolView = Schemas['ToolView']
export type UsageRow = Schemas['UsageRow']

/** An item of the stream of one kind. */
export type Item<K extends StreamItem['kind']> = Extract<StreamItem, { kind: K }>
