/** Tools of the responses interface: functions, the vendor's search and image generation, and which may be called. */

import type { BuiltInTool } from '../../answers/built-in-tools.ts'
import type { FunctionTool, Prompt } from '../../answers/script.ts'
import { isObject } from '../../dialect.ts'
import { invalid, missing } from './input.ts'

const FUNCTION_NAME = /^[a-zA-Z0-9_-]{1,64}$/
const SEARCHES = [
  'web_search',
  'web_search_2025_08_26',
  'web_search_preview',
  'web_search_preview_2025_03_11',
]
/** Tools that the caller runs. */
const CALLABLE = ['function', 'custom']
/** Tools that are accepted and never called. */
const OTHER_TOOLS = [
  'file_search',
  'code_interpreter',
  'mcp',
  'local_shell',
  'shell',
  'apply_patch',
  'computer',
  'computer_use_preview',
  'tool_search',
]

type Tools = {
  readonly functions: readonly FunctionTool[]
  readonly builtIns: readonly BuiltInTool[]
}

/** @throws {SimulatedFailure} 400 that names the tool. */
export function readTools(tools: unknown): Tools {
  if (tools === undefined || tools === null) return { functions: [], builtIns: [] }
  if (!Array.isArray(tools)) throw invalid('tools', "Invalid type for 'tools': expected an array of objects.")
  const functions: FunctionTool[] = []
  const builtIns = new Set<BuiltInTool>()
  for (const [index, tool] of tools.entries()) {
    const path = `tools[${index}]`
    const type = isObject(tool) ? String(tool.type ?? '') : ''
    if (type === '') throw missing(`${path}.type`)
    if (CALLABLE.includes(type)) functions.push(readCallable(tool, path))
    else if (type === 'namespace') functions.push(...readNamespace(tool, path))
    else if (SEARCHES.includes(type)) builtIns.add('web_search')
    else if (type === 'image_generation') builtIns.add('image_generation')
    else if (!OTHER_TOOLS.includes(type)) throw invalid(`${path}.type`, `Invalid value: '${type}'.`)
  }
  return { functions, builtIns: [...builtIns] }
}

/** @throws {SimulatedFailure} 400 */
export function readToolChoice(choice: unknown, { functions, builtIns }: Tools): Prompt['toolChoice'] {
  if (choice === undefined || choice === null || choice === 'auto') return 'auto'
  if (choice === 'none') return 'none'
  if (choice === 'required') {
    if (functions.length > 0 || builtIns.length > 0) return 'required'
    throw invalid('tool_choice', "Tool choice 'required' must be specified with 'tools' parameter.")
  }
  if (!isObject(choice)) throw invalid('tool_choice', `Invalid value: '${choice}'.`)
  if (CALLABLE.includes(String(choice.type))) return chosenFunction(choice, functions)
  if (choice.type === 'allowed_tools') return choice.mode === 'required' ? 'required' : 'auto'
  const tool = SEARCHES.includes(String(choice.type)) ? 'web_search' : choice.type
  if (builtIns.some((builtIn) => builtIn === tool)) return { name: String(tool) }
  throw invalid('tool_choice', `Tool choice '${choice.type}' not found in 'tools' parameter.`)
}

function chosenFunction({ name }: Record<string, unknown>, functions: readonly FunctionTool[]) {
  if (typeof name !== 'string') throw missing('tool_choice.name')
  if (functions.some((tool) => tool.name === name)) return { name }
  throw invalid('tool_choice', `Tool choice 'function' not found in 'tools' parameter.`)
}

function readNamespace(group: Record<string, unknown>, path: string): FunctionTool[] {
  const { name: namespace, tools } = group
  if (typeof namespace !== 'string' || !FUNCTION_NAME.test(namespace)) throw missing(`${path}.name`)
  if (!Array.isArray(tools)) throw missing(`${path}.tools`)
  return tools.map((tool, index) => {
    const inner = `${path}.tools[${index}]`
    if (!CALLABLE.includes(tool?.type)) throw invalid(`${inner}.type`, `Invalid value: '${tool?.type}'.`)
    return { ...readCallable(tool, inner), namespace }
  })
}

function readCallable(tool: Record<string, unknown>, path: string): FunctionTool {
  if (tool.name === undefined) throw missing(`${path}.name`)
  if (typeof tool.name !== 'string' || !FUNCTION_NAME.test(tool.name)) {
    throw invalid(
      `${path}.name`,
      `Invalid '${path}.name': string does not match pattern. Expected a string that matches the pattern '${FUNCTION_NAME.source}'.`,
    )
  }
  if (tool.parameters !== undefined && tool.parameters !== null && !isObject(tool.parameters))
    throw invalid(`${path}.parameters`, `Invalid type for '${path}.parameters': expected an object.`)
  return { name: tool.name, schema: tool.parameters, ...(tool.type === 'custom' && { isCustom: true }) }
}
