/** Writes tools and the choice among them for generate-content. See docs/translation.md, "Any two protocols". */
import type { Conversation, OfferedTool, ToolChoice } from '../../../../schemas/chat/conversation.ts'
import { findProvider } from '../../../channels/providers/presets.ts'
import { type DroppedFields, nameSearchOptions } from '../../translate/dropped-fields.ts'
import { CUSTOM_INPUT_SCHEMA, flatName } from '../../translate/tool-names.ts'
import type { ModelFamily } from '../family.ts'
import { isEmptyObject, schemaSubset } from './schema-subset.ts'

type Sent = Readonly<Record<string, unknown>>
type FunctionTool = Extract<OfferedTool, { type: 'function' | 'custom' }>

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
export function writeTools(
  { tools: asked, toolChoice }: Conversation,
  { family, provider }: ToolTarget,
  dropped: DroppedFields,
): SentTools {
  const choice = toolChoice?.value ?? null
  const isStrict = asked.some((tool) => tool.type === 'function' && tool.isStrict)
  if (isStrict && !family.takesValidatedCalls) dropped.add('strict')
  const { declared, searches } = writeEach(asked, family, dropped)
  const offered = listAllowedFunctions(declared, choice)
  const mayCombine = offered.length === 0 || family.combinesTools
  if (searches && allowsSearch(choice) && !mayCombine)
    dropped.add('web_search', 'not together with functions for this model')
  const isSearching = searches && allowsSearch(choice) && mayCombine
  const tools = [
    ...(offered.length === 0 ? [] : [{ functionDeclarations: offered }]),
    ...(isSearching ? [{ googleSearch: {} }] : []),
  ]
  // A choice among functions where there are none is refused.
  if (offered.length === 0 && choice !== null && choice !== 'auto' && choice !== 'none')
    dropped.add('tool_choice', 'there is no function to choose')
  if (tools.length === 0) return {}
  if (offered.length === 0) return { tools }
  const isValidated = isSearching || (isStrict && family.takesValidatedCalls)
  if (choice === null && !isValidated) return { tools }
  const toolConfig = {
    functionCallingConfig: callingConfig(choice ?? 'auto', isValidated ? 'VALIDATED' : 'AUTO'),
    // Without it functions are refused beside the search.
    ...(isSearching && !findProvider(provider)?.lacksToolInvocations
      ? { includeServerSideToolInvocations: true }
      : {}),
  }
  return { tools, toolConfig }
}

function writeEach(asked: readonly OfferedTool[], family: ModelFamily, dropped: DroppedFields) {
  const declared: Sent[] = []
  let searches = false
  for (const tool of asked) {
    if (tool.type === 'web_search') {
      searches = true
      nameSearchOptions(tool, [], dropped)
    } else if (tool.type === 'other')
      dropped.add(tool.name === 'image_generation' ? 'image_generation' : tool.path)
    else declared.push(declaration(tool, family))
  }
  return { declared, searches }
}

const declaration = (tool: FunctionTool, family: ModelFamily): Sent => ({
  name: flatName(tool),
  ...(tool.description === null ? {} : { description: tool.description }),
  ...parameters(tool.type === 'custom' ? CUSTOM_INPUT_SCHEMA : tool.schema, family),
})

/**
 * Returns the parameters. The subset refuses an object without properties, so a function without parameters is
 * declared without any.
 */
function parameters(schema: Sent | null, family: ModelFamily): object {
  if (schema === null || isEmptyObject(schema)) return {}
  if (family.takesJsonSchema) return { parametersJsonSchema: schema }
  const subset = schemaSubset(schema)
  return subset.type === 'OBJECT' && subset.properties === undefined ? {} : { parameters: subset }
}

/** Returns all functions, or those to which the choice is limited. */
function listAllowedFunctions(declared: readonly Sent[], choice: ToolChoice | null): readonly Sent[] {
  if (choice === null || typeof choice === 'string' || !('allowed' in choice)) return declared
  const names = new Set<unknown>(choice.allowed)
  return declared.filter(({ name }) => names.has(name))
}

/** Returns false for a choice that forbids every tool, or names the functions that are allowed. */
const allowsSearch = (choice: ToolChoice | null): boolean =>
  choice !== 'none' && (choice === null || typeof choice === 'string' || !('allowed' in choice))

/** @param auto the mode for a choice that is left to the model */
function callingConfig(choice: ToolChoice, auto: 'AUTO' | 'VALIDATED'): Sent {
  const modes = { auto, none: 'NONE', required: 'ANY' }
  if (typeof choice === 'string') return { mode: modes[choice] }
  if ('name' in choice) return { mode: 'ANY', allowedFunctionNames: [choice.name] }
  return { mode: modes[choice.mode] }
}
