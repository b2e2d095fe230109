/** The tools of the knowledge bases: their descriptions, and how one is carried out. */
import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type Tool,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { Failure } from '../../schemas/failure.ts'
import {
  MCP_TOOLS,
  type McpTool,
  type ToolInput,
  type ToolName,
  type ToolOutput,
} from '../../schemas/knowledge/mcp.ts'
import { PLAIN_ISSUES } from '../core/plain-issues.ts'

/**
 * Carries the tools out, for one key. A Failure is reported to the model, which may do better; any other error ends
 * the request.
 */
export type ToolSet = {
  readonly [Name in ToolName]: (input: ToolInput<Name>) => Promise<ToolOutput<Name>>
}

/** The longest text of a client that an error repeats. */
const ECHO_MAX_CHARS = 100

/** Clients that know one type a schema, as model providers do, take "or null" as a choice, not as a list of types. */
const keepOneType = (_key: string, value: unknown): unknown => {
  const { type, ...rest } = Object(value) as { type?: unknown }
  return Array.isArray(type) ? { ...rest, anyOf: type.map((one: unknown) => ({ type: one })) } : value
}

function toJsonSchema(schema: z.ZodObject): Tool['inputSchema'] {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      // A double bounds whole numbers in any case: the schema need not repeat it.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    },
  })
  return JSON.parse(JSON.stringify(rest), keepOneType) as Tool['inputSchema']
}

const describeTool = ([name, { title, description, input, output }]: [string, McpTool]): Tool => ({
  name,
  title,
  description,
  inputSchema: toJsonSchema(input),
  outputSchema: toJsonSchema(output),
  annotations: {
    title,
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  },
})

export const TOOLS: readonly Tool[] = Object.entries(MCP_TOOLS).map(describeTool)

const isToolName = (name: string): name is ToolName => Object.hasOwn(MCP_TOOLS, name)

const toContent = (text: string): CallToolResult['content'] => [{ type: 'text', text }]

const refuse = (text: string): CallToolResult => ({ content: toContent(text), isError: true })

/** Names every wrong argument, so that the next try can be right. */
function refuseArguments(name: ToolName, { issues }: z.ZodError): CallToolResult {
  const said = issues.map(({ path, message }) => `${path.join('.') || 'arguments'}: ${message}`)
  const known = Object.keys(MCP_TOOLS[name].input.shape).join(', ')
  return refuse(`These arguments do not fit ${name}. ${said.join('; ')}. It takes: ${known}.`)
}

/**
 * Calls a tool.
 * @throws ProtocolError for a tool that does not exist; errors of the tool, unless they are Failures
 */
export async function callTool(tools: ToolSet, name: string, given: unknown): Promise<CallToolResult> {
  if (!isToolName(name))
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `There is no tool ${JSON.stringify(name.slice(0, ECHO_MAX_CHARS))}. There are: ${Object.keys(MCP_TOOLS).join(', ')}`,
    )
  const input = MCP_TOOLS[name].input.safeParse(given ?? {}, PLAIN_ISSUES)
  if (!input.success) return refuseArguments(name, input.error)
  try {
    const output = await (tools[name] as (input: unknown) => Promise<Record<string, unknown>>)(input.data)
    return { content: toContent(JSON.stringify(output)), structuredContent: output }
  } catch (error) {
    if (error instanceof Failure) return refuse(error.message)
    throw error
  }
}
