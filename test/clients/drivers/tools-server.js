/** Serves as many tools as its argument says, over MCP on stdin and stdout. */
import { createInterface } from 'node:readline'
import { TOOL_SCHEMA, toolNames } from './driver.js'

const tools = toolNames(Number(process.argv[2])).map((name) => ({
  ...{ name, description: `Finds ${name}.`, inputSchema: TOOL_SCHEMA },
}))

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    ...{ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'many', version: '1' } },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name }) => ({ content: [{ type: 'text', text: `${name} has found it.` }] }),
  ping: () => ({}),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  const answer = METHODS[method]?.(params)
  const outcome =
    answer === undefined ? { error: { code: -32601, message: 'no such method' } } : { result: answer }
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...outcome })}\n`)
}
