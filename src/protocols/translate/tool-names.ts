/**
 * Names of tools at upstreams that have functions only: a tool in a namespace gets one name, and a custom tool, which takes free
 * text, becomes a function with one text. See docs/translation.md, "Any two protocols".
 */
import type { OfferedTool } from '../../../schemas/chat/conversation.ts'
import { parseFields, toFields, toText } from '../loose.ts'

interface CalledTool {
  readonly name: string
  readonly namespace?: string
  readonly isCustom: boolean
}

/** Arguments of the function that stands for a custom tool. */
export const CUSTOM_INPUT_SCHEMA = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
  additionalProperties: false,
} as const

export const flatName = ({ name, namespace }: { name: string; namespace?: string }): string =>
  namespace === undefined ? name : `${namespace}__${name}`

/** Returns the text for a custom tool in the arguments of its function. */
export const customInput = (json: string): string => toText(toFields(parseFields(json)).input)

export const customArguments = (input: string): string => JSON.stringify({ input })

/** Finds the tool that an upstream has called. */
export class ToolNames {
  readonly #tools: ReadonlyMap<string, CalledTool>

  constructor(tools: readonly OfferedTool[]) {
    const named = tools.flatMap((tool) => {
      if (tool.type !== 'function' && tool.type !== 'custom') return []
      const { type, name, namespace } = tool
      const called: CalledTool = {
        name,
        isCustom: type === 'custom',
        ...(namespace !== undefined && { namespace }),
      }
      return [[flatName(called), called] as const]
    })
    this.#tools = new Map(named)
  }

  /** A tool that the client did not offer has the name that the upstream gave it. */
  find(name: string): CalledTool {
    return this.#tools.get(name) ?? { name, isCustom: false }
  }
}
