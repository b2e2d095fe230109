/** Tools of the messages interface: the caller's and the vendor's, and which is to be called. */

import type { FunctionTool, Prompt } from '../../answers/script.ts'
import { isObject } from '../../dialect.ts'
import { invalid, requireString, strictObject } from './fields.ts'
import { isAdvisor } from './other-models.ts'

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/
const WEB_SEARCH = /^web_search_\d{8}$/
const CUSTOM_FIELDS = [
  ...['type', 'name', 'description', 'input_schema', 'cache_control', 'strict', 'eager_input_streaming'],
  ...['defer_loading', 'allowed_callers', 'input_examples'],
]

type Tools = {
  readonly functions: readonly FunctionTool[]
  readonly searches: boolean
}

/** @throws {SimulatedFailure} 400 that names the tool. */
export function readTools(tools: unknown): Tools {
  if (tools === undefined) return { functions: [], searches: false }
  if (!Array.isArray(tools)) throw invalid('tools: Input should be a valid list')
  const functions: FunctionTool[] = []
  let searches = false
  for (const [index, tool] of tools.entries()) {
    const type = isObject(tool) ? (tool.type ?? 'custom') : null
    if (typeof type === 'string' && WEB_SEARCH.test(type)) searches = true
    else if (!isAdvisor(tool)) functions.push(readCustom(tool, type, `tools.${index}`))
  }
  const names = functions.map(({ name }) => name)
  if (searches) names.push('web_search')
  if (new Set(names).size < names.length) throw invalid('tools: Tool names must be unique.')
  return { functions, searches }
}

/** @throws {SimulatedFailure} 400 */
export function readToolChoice(choice: unknown, tools: Tools): Prompt['toolChoice'] {
  if (choice === undefined) return 'auto'
  if (!isObject(choice)) throw invalid('tool_choice: Input should be a valid dictionary')
  const path = `tool_choice.${choice.type}`
  switch (choice.type) {
    case 'auto':
    case 'any':
      strictObject(choice, path, ['type', 'disable_parallel_tool_use'])
      refuseWithoutTools(tools)
      return choice.type === 'any' ? 'required' : 'auto'
    case 'none':
      strictObject(choice, path, ['type'])
      return 'none'
    case 'tool': {
      strictObject(choice, path, ['type', 'name', 'disable_parallel_tool_use'])
      const name = requireString(choice, 'name', path)
      refuseWithoutTools(tools)
      if (!tools.functions.some((tool) => tool.name === name) && !(tools.searches && name === 'web_search'))
        throw invalid(`tool_choice: Tool '${name}' not found in provided tools`)
      return { name }
    }
    default:
      throw invalid(
        `tool_choice: Input tag '${choice.type}' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'`,
      )
  }
}

function readCustom(tool: unknown, type: unknown, path: string): FunctionTool {
  if (type !== 'custom')
    throw invalid(`${path}: Input tag '${type}' found using 'type' does not match any of the expected tags`)
  const described = strictObject(tool, `${path}.custom`, CUSTOM_FIELDS)
  const name = requireString(described, 'name', `${path}.custom`)
  if (!TOOL_NAME.test(name))
    throw invalid(`${path}.custom.name: String should match pattern '${TOOL_NAME.source}'`)
  const schema = described.input_schema
  if (!isObject(schema)) throw invalid(`${path}.custom.input_schema: Field required`)
  if (schema.type === undefined) throw invalid(`${path}.custom.input_schema.type: Field required`)
  if (schema.type !== 'object') throw invalid(`${path}.custom.input_schema.type: Input should be 'object'`)
  return { name, schema }
}

function refuseWithoutTools({ functions, searches }: Tools): void {
  if (functions.length === 0 && !searches)
    throw invalid('tool_choice: tool_choice may only be specified while providing tools')
}
