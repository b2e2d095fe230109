/** Tools and the choice among them. See docs/translation.md, "The request". */
import type { OfferedTool, ToolChoice } from '../../../../schemas/chat/chat-completions-conversation.ts'
import { nameSearchOptionsLeftOut } from '../../chat-completions/fields.ts'
import type { ToolConversation } from '../../chat-completions/legacy-functions.ts'
import { fieldsOf } from '../../loose.ts'
import type { ModelFamily } from '../../messages/family.ts'
import { ANSWER_TOOL } from '../../messages/output-format.ts'
import { StrictTools } from '../../messages/strict-tools.ts'
import { invalidField } from '../../request/client-json.ts'
import type { DroppedFields } from '../dropped-fields.ts'

/** A tool, or the choice of one, as it is sent. */
type Sent = Readonly<Record<string, unknown>>

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
export function translateTools(
  asked: ToolConversation,
  used: readonly string[],
  family: ModelFamily,
  dropped: DroppedFields,
): SentTools {
  const strict = family.takesSchemas ? new StrictTools() : null
  const offered = asked.tools.flatMap((tool, index) => sentTool(tool, index, strict, dropped))
  const tools = allowedOf(offered, asked.choice)
  if (tools.length > 0) return { tools, choice: sentChoice(asked, family, dropped) }
  if (asked.choice !== null && asked.choice !== 'auto' && asked.choice !== 'none')
    dropped.add('tool_choice', 'there is no tool to choose')
  if (used.length === 0) return { tools, choice: null }
  // The client offered none of them, so none may be called.
  return { tools: used.map((name) => ({ name, input_schema: NO_PARAMETERS })), choice: { type: 'none' } }
}

/** @param strict null for a model without strict tools */
function sentTool(
  tool: OfferedTool,
  index: number,
  strict: StrictTools | null,
  dropped: DroppedFields,
): Sent[] {
  if (tool.type === 'function') return [functionTool(tool, index, strict, dropped)]
  if (VENDOR_TOOL.test(tool.type)) return [tool]
  if (tool.type.startsWith('web_search')) return [webSearchTool(tool, dropped)]
  dropped.add(tool.type === 'image_generation' ? 'image_generation' : `tools[${index}]`)
  return []
}

function functionTool(
  tool: OfferedTool,
  index: number,
  strict: StrictTools | null,
  dropped: DroppedFields,
): Sent {
  const offered = tool.function
  if (offered === undefined) throw invalidField(`tools[${index}].function`, 'it is missing')
  if (offered.name === ANSWER_TOOL)
    throw invalidField(`tools[${index}].function.name`, 'the gateway has a tool of this name')
  const schema = inputSchema(offered.parameters)
  const isStrict = offered.strict === true && strict?.take(schema) === true
  if (offered.strict === true && !isStrict)
    dropped.add(
      'strict',
      strict === null ? undefined : 'not for each tool: this model holds calls to fewer and simpler schemas',
    )
  const cacheControl = tool.cache_control ?? offered.cache_control
  return {
    name: offered.name,
    ...(offered.description == null ? {} : { description: offered.description }),
    input_schema: schema,
    ...(isStrict ? { strict: true } : {}),
    ...(cacheControl == null ? {} : { cache_control: cacheControl }),
  }
}

/** Returns the client's schema, preceded by required fields that it lacks. */
function inputSchema(parameters: Sent | null | undefined): Sent {
  if (parameters == null || Object.keys(parameters).length === 0) return NO_PARAMETERS
  return parameters.type === undefined ? { type: 'object', ...parameters } : parameters
}

function webSearchTool(tool: OfferedTool, dropped: DroppedFields): Sent {
  nameSearchOptionsLeftOut(tool, ['user_location', 'filters'], dropped)
  const place = fieldsOf(tool.user_location)
  const details = Object.hasOwn(place, 'approximate') ? fieldsOf(place.approximate) : place
  const domains = fieldsOf(tool.filters).allowed_domains
  return {
    type: WEB_SEARCH_TYPE,
    name: WEB_SEARCH_NAME,
    ...(Object.keys(details).length === 0 ? {} : { user_location: { type: 'approximate', ...details } }),
    ...(Array.isArray(domains) && domains.length > 0 ? { allowed_domains: domains } : {}),
    ...(tool.cache_control == null ? {} : { cache_control: tool.cache_control }),
  }
}

/** Returns all tools, or those to which the choice is limited. */
function allowedOf(tools: readonly Sent[], choice: ToolChoice | null): readonly Sent[] {
  if (typeof choice !== 'object' || choice?.type !== 'allowed_tools') return tools
  const names = new Set(choice.allowed_tools.tools.map((allowed) => allowed.function.name))
  return tools.filter(({ name }) => typeof name === 'string' && names.has(name))
}

function sentChoice(asked: ToolConversation, family: ModelFamily, dropped: DroppedFields): Sent | null {
  let choice = asked.choice === null ? null : translatedChoice(asked.choice)
  if (isForced(choice) && !family.takesForcedTools) {
    dropped.add('tool_choice', 'this model cannot be made to call a tool')
    choice = { type: CHOICES.auto }
  }
  if (asked.isParallel || choice?.type === 'none') return choice
  return { ...(choice ?? { type: 'auto' }), disable_parallel_tool_use: true }
}

const CHOICES = { auto: 'auto', required: 'any', none: 'none' } as const

function translatedChoice(choice: ToolChoice): Sent {
  if (typeof choice === 'string') return { type: CHOICES[choice] }
  if (choice.type === 'function') return { type: 'tool', name: choice.function.name }
  return { type: CHOICES[choice.allowed_tools.mode] }
}

/** Returns whether the choice forces a tool. */
export const isForced = (choice: Sent | null): boolean => choice?.type === 'any' || choice?.type === 'tool'
