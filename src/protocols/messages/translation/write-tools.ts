/** Writes tools and the choice among them for messages. See docs/translation.md, "Any two protocols". */
import type { Conversation, OfferedTool, ToolChoice } from '../../../../schemas/chat/conversation.ts'
import { invalidField } from '../../request/client-json.ts'
import { type DroppedFields, nameSearchOptions } from '../../translate/dropped-fields.ts'
import { CUSTOM_INPUT_SCHEMA, flatName } from '../../translate/tool-names.ts'
import type { ModelFamily } from './family.ts'
import { ANSWER_TOOL } from './output-format.ts'
import { StrictTools } from './strict-tools.ts'

/** A tool, or the choice of one, as it is sent. */
type Sent = Readonly<Record<string, unknown>>
type Asked = Pick<Conversation, 'tools' | 'toolChoice' | 'isParallel'>

export interface SentTools {
  readonly tools: readonly Sent[]
  readonly choice: Sent | null
}

/** The version of the vendor's own search tool. */
const WEB_SEARCH_TYPE = 'web_search_20250305'
const WEB_SEARCH_NAME = 'web_search'
const NO_PARAMETERS = { type: 'object', properties: {} }
/** Such as `web_search_20250305`: a tool in the vendor's own words. */
const VENDOR_TOOL = /^web_search_\d{8}$/

/** Returns the tools. `used` are those called before: a history with calls is refused where none are declared. */
export function writeTools(
  asked: Asked,
  used: readonly string[],
  family: ModelFamily,
  dropped: DroppedFields,
): SentTools {
  const strict = family.takesSchemas ? new StrictTools() : null
  const offered = asked.tools.flatMap((tool) => writeTool(tool, strict, dropped))
  const choice = asked.toolChoice?.value ?? null
  const tools = listAllowedTools(offered, choice)
  if (tools.length > 0) return { tools, choice: writeChoice(asked, family, dropped) }
  if (choice !== null && choice !== 'auto' && choice !== 'none')
    dropped.add('tool_choice', 'there is no tool to choose')
  if (used.length === 0) return { tools, choice: null }
  // The client offered none of them, so none may be called.
  return { tools: used.map((name) => ({ name, input_schema: NO_PARAMETERS })), choice: { type: 'none' } }
}

/** @param strict null for a model without strict tools */
function writeTool(tool: OfferedTool, strict: StrictTools | null, dropped: DroppedFields): Sent[] {
  switch (tool.type) {
    case 'function':
    case 'custom':
      return [writeFunction(tool, strict, dropped)]
    case 'web_search':
      return [writeSearch(tool, dropped)]
    case 'other':
      dropped.add(tool.name === 'image_generation' ? 'image_generation' : tool.path)
      return []
  }
}

function writeFunction(
  tool: Extract<OfferedTool, { type: 'function' | 'custom' }>,
  strict: StrictTools | null,
  dropped: DroppedFields,
): Sent {
  const name = flatName(tool)
  if (name === ANSWER_TOOL) throw invalidField(`${tool.path}.name`, 'the gateway has a tool of this name')
  const schema = tool.type === 'custom' ? CUSTOM_INPUT_SCHEMA : inputSchema(tool.schema)
  const wantsStrict = tool.type === 'function' && tool.isStrict
  const isStrict = wantsStrict && strict?.take(schema) === true
  if (wantsStrict && !isStrict)
    dropped.add(
      'strict',
      strict === null ? undefined : 'not for each tool: this model holds calls to fewer and simpler schemas',
    )
  return {
    name,
    ...(tool.description === null ? {} : { description: tool.description }),
    input_schema: schema,
    ...(isStrict ? { strict: true } : {}),
    ...(tool.cache === undefined ? {} : { cache_control: tool.cache }),
  }
}

/** Returns the client's schema, preceded by required fields that it lacks. */
function inputSchema(parameters: Sent | null): Sent {
  if (parameters === null || Object.keys(parameters).length === 0) return NO_PARAMETERS
  return parameters.type === undefined ? { type: 'object', ...parameters } : parameters
}

type Search = Extract<OfferedTool, { type: 'web_search' }>

function writeSearch(tool: Search, dropped: DroppedFields): Sent {
  if (VENDOR_TOOL.test(String(tool.given.type))) return tool.given
  nameSearchOptions(tool, ['location', 'allowedDomains', 'blockedDomains', 'maxUses'], dropped)
  const { location, allowedDomains, blockedDomains, maxUses, cache } = tool
  return {
    type: WEB_SEARCH_TYPE,
    name: WEB_SEARCH_NAME,
    ...(location === null ? {} : { user_location: { type: 'approximate', ...location } }),
    ...(allowedDomains.length > 0 ? { allowed_domains: allowedDomains } : {}),
    ...(blockedDomains.length > 0 ? { blocked_domains: blockedDomains } : {}),
    ...(maxUses === null ? {} : { max_uses: maxUses }),
    ...(cache === undefined ? {} : { cache_control: cache }),
  }
}

/** Returns all tools, or those to which the choice is limited. */
function listAllowedTools(tools: readonly Sent[], choice: ToolChoice | null): readonly Sent[] {
  if (choice === null || typeof choice === 'string' || !('allowed' in choice)) return tools
  const names = new Set<unknown>(choice.allowed)
  return tools.filter(({ name }) => names.has(name))
}

function writeChoice(asked: Asked, family: ModelFamily, dropped: DroppedFields): Sent | null {
  let choice = asked.toolChoice === null ? null : toSentChoice(asked.toolChoice.value)
  if (isForced(choice) && !family.takesForcedTools) {
    dropped.add('tool_choice', 'this model cannot be made to call a tool')
    choice = { type: CHOICES.auto }
  }
  if (asked.isParallel || choice?.type === 'none') return choice
  return { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true }
}

const CHOICES = { auto: 'auto', required: 'any', none: 'none' } as const

function toSentChoice(choice: ToolChoice): Sent {
  if (typeof choice === 'string') return { type: CHOICES[choice] }
  return 'name' in choice ? { type: 'tool', name: choice.name } : { type: CHOICES[choice.mode] }
}

/** Returns whether the choice forces a tool. */
export const isForced = (choice: Sent | null): boolean => choice?.type === 'any' || choice?.type === 'tool'
