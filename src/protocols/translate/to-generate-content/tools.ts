/** Tools and the choice among them. See docs/translation.md, "The request". */
import type { OfferedTool, ToolChoice } from '../../../../schemas/chat/chat-completions-conversation.ts'
import { findProvider } from '../../../channels/providers/presets.ts'
import { nameCacheMarkers, nameSearchOptionsLeftOut } from '../../chat-completions/fields.ts'
import type { ToolConversation } from '../../chat-completions/legacy-functions.ts'
import type { ModelFamily } from '../../generate-content/family.ts'
import { invalidField } from '../../request/client-json.ts'
import type { DroppedFields } from '../dropped-fields.ts'
import { isEmptyObject, schemaSubset } from './schema-subset.ts'

type Sent = Readonly<Record<string, unknown>>

interface ToolTarget {
  readonly family: ModelFamily
  readonly provider?: string
}

export interface SentTools {
  readonly tools?: readonly Sent[]
  readonly toolConfig?: { readonly functionCallingConfig: Sent }
}

/** Returns whether the choice forces a function. */
export const isForced = ({ toolConfig }: SentTools): boolean =>
  toolConfig?.functionCallingConfig.mode === 'ANY'

/** Returns `tools` and `toolConfig`, unless empty. */
export function translateTools(
  asked: ToolConversation,
  { family, provider }: ToolTarget,
  dropped: DroppedFields,
): SentTools {
  const declared: Sent[] = []
  const isStrict = asked.tools.some((tool) => tool.function?.strict === true)
  if (isStrict && !family.takesValidatedCalls) dropped.add('strict')
  let searches = false
  for (const [index, tool] of asked.tools.entries()) {
    nameCacheMarkers(tool, [], dropped)
    if (tool.type === 'function') declared.push(declaration(tool, index, family, dropped))
    else if (tool.type.startsWith('web_search')) {
      searches = true
      nameSearchOptionsLeftOut(tool, [], dropped)
    } else dropped.add(tool.type === 'image_generation' ? 'image_generation' : `tools[${index}]`)
  }
  const offered = allowedOf(declared, asked.choice)
  if (!allowsSearch(asked.choice)) searches = false
  else if (searches && offered.length > 0 && !family.combinesTools) {
    searches = false
    dropped.add('web_search', 'not together with functions for this model')
  }
  const tools = [
    ...(offered.length === 0 ? [] : [{ functionDeclarations: offered }]),
    ...(searches ? [{ googleSearch: {} }] : []),
  ]
  // A choice among functions where there are none is refused.
  if (offered.length === 0 && asked.choice !== null && asked.choice !== 'auto' && asked.choice !== 'none')
    dropped.add('tool_choice', 'there is no function to choose')
  if (tools.length === 0) return {}
  if (offered.length === 0) return { tools }
  const isValidated = searches || (isStrict && family.takesValidatedCalls)
  if (asked.choice === null && !isValidated) return { tools }
  const toolConfig = {
    functionCallingConfig: callingConfig(asked.choice ?? 'auto', isValidated ? 'VALIDATED' : 'AUTO'),
    // Without it functions are refused beside the search.
    ...(searches && !findProvider(provider)?.lacksToolInvocations
      ? { includeServerSideToolInvocations: true }
      : {}),
  }
  return { tools, toolConfig }
}

function declaration(tool: OfferedTool, index: number, family: ModelFamily, dropped: DroppedFields): Sent {
  const offered = tool.function
  if (offered === undefined) throw invalidField(`tools[${index}].function`, 'it is missing')
  nameCacheMarkers(offered, [], dropped)
  return {
    name: offered.name,
    ...(offered.description == null ? {} : { description: offered.description }),
    ...parameters(offered.parameters, family),
  }
}

/**
 * Returns the parameters. The subset refuses an object without properties, so a function without parameters is
 * declared without any.
 */
function parameters(schema: Sent | null | undefined, family: ModelFamily): object {
  if (schema == null || isEmptyObject(schema)) return {}
  if (family.takesJsonSchema) return { parametersJsonSchema: schema }
  const subset = schemaSubset(schema)
  return subset.type === 'OBJECT' && subset.properties === undefined ? {} : { parameters: subset }
}

/** Returns all functions, or those to which the choice is limited. */
function allowedOf(declared: readonly Sent[], choice: ToolChoice | null): readonly Sent[] {
  if (typeof choice !== 'object' || choice?.type !== 'allowed_tools') return declared
  const names = new Set<unknown>(choice.allowed_tools.tools.map((allowed) => allowed.function.name))
  return declared.filter(({ name }) => names.has(name))
}

/** Returns false for a choice that forbids every tool, or names the functions that are allowed. */
const allowsSearch = (choice: ToolChoice | null): boolean =>
  choice !== 'none' && (typeof choice === 'string' || choice?.type !== 'allowed_tools')

/** @param auto the mode for a choice that is left to the model */
function callingConfig(choice: ToolChoice, auto: 'AUTO' | 'VALIDATED'): Sent {
  const modes = { auto, none: 'NONE', required: 'ANY' }
  if (typeof choice === 'string') return { mode: modes[choice] }
  if (choice.type === 'function') return { mode: 'ANY', allowedFunctionNames: [choice.function.name] }
  return { mode: modes[choice.allowed_tools.mode] }
}
