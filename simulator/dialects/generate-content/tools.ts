/** Tools of the generate-content interface: functions, the vendor's own search, and which may be called. */

import type { FunctionTool, Prompt } from '../../answers/script.ts'
import { isObject } from '../../dialect.ts'
import { checkParameters, invalid, knownFields, readList } from './schema.ts'

const FUNCTION_NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/
const MODES = ['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED']
const TOOL_FIELDS = [
  ...['functionDeclarations', 'googleSearch', 'googleSearchRetrieval', 'codeExecution', 'urlContext'],
  ...['googleMaps', 'fileSearch', 'computerUse'],
]
const DECLARATION_FIELDS = [
  ...['name', 'description', 'behavior', 'parameters', 'parametersJsonSchema'],
  ...['response', 'responseJsonSchema'],
]

type Tools = { readonly functions: readonly FunctionTool[]; readonly searches: boolean }

/** @throws {SimulatedFailure} 400 that names the place. */
export function readTools(tools: unknown): Tools {
  const functions: FunctionTool[] = []
  let searches = false
  for (const [index, tool] of readList(tools, 'tools').entries()) {
    const path = `tools[${index}]`
    const fields = knownFields(tool, path, TOOL_FIELDS)
    searches ||= isObject(fields.googleSearch) || isObject(fields.googleSearchRetrieval)
    const declarations = readList(fields.functionDeclarations, `${path}.function_declarations`)
    for (const [at, declaration] of declarations.entries())
      functions.push(readDeclaration(declaration, `${path}.function_declarations[${at}]`))
  }
  const names = functions.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) throw invalid(`Duplicate function declaration found: ${twice}`)
  return { functions, searches }
}

type Choice = {
  readonly toolChoice: Prompt['toolChoice']
  /** The functions that may be called. */
  readonly callable: readonly FunctionTool[]
}

/** @throws {SimulatedFailure} 400 */
export function readToolConfig(toolConfig: unknown, { functions }: Tools): Choice {
  const free: Choice = { toolChoice: 'auto', callable: functions }
  if (toolConfig === undefined) return free
  const config = knownFields(toolConfig, 'tool_config', [
    ...['functionCallingConfig', 'retrievalConfig', 'includeServerSideToolInvocations'],
  ])
  if (config.functionCallingConfig === undefined) return free
  const path = 'tool_config.function_calling_config'
  const { mode = 'AUTO', allowedFunctionNames } = knownFields(config.functionCallingConfig, path, [
    ...['mode', 'allowedFunctionNames', 'streamFunctionCallArguments'],
  ])
  const word = String(mode).toUpperCase()
  if (typeof mode !== 'string' || !MODES.includes(word))
    throw invalid(`Invalid value at '${path}.mode', "${mode}"`)
  const allowed = readList(allowedFunctionNames, `${path}.allowed_function_names`)
  if (allowed.length > 0 && word !== 'ANY' && word !== 'VALIDATED')
    throw invalid('Allowed function names can only be set when function calling mode is ANY or VALIDATED.')
  for (const name of allowed) {
    if (!functions.some((declared) => declared.name === name))
      throw invalid(`Allowed function name is not found in the function declarations: ${name}`)
  }
  if (word === 'ANY' && functions.length === 0)
    throw invalid('Function calling config is set without function_declarations.')
  const callable = allowed.length === 0 ? functions : functions.filter(({ name }) => allowed.includes(name))
  return { toolChoice: word === 'ANY' ? 'required' : word === 'NONE' ? 'none' : 'auto', callable }
}

function readDeclaration(value: unknown, path: string): FunctionTool {
  const { name, parameters, parametersJsonSchema } = knownFields(value, path, DECLARATION_FIELDS)
  if (typeof name !== 'string' || !FUNCTION_NAME.test(name)) {
    throw invalid(
      `* GenerateContentRequest.${path}.name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. ` +
        'Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.\n',
    )
  }
  if (parameters !== undefined && parametersJsonSchema !== undefined)
    throw invalid(
      `* GenerateContentRequest.${path}: parameters and parameters_json_schema are mutually exclusive.\n`,
    )
  if (parameters !== undefined) checkParameters(parameters, `${path}.parameters`)
  if (parametersJsonSchema !== undefined && !isObject(parametersJsonSchema))
    throw invalid(`Invalid value at '${path}.parameters_json_schema': expected an object.`)
  return { name, schema: parameters ?? parametersJsonSchema }
}
