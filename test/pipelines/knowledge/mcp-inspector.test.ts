/**
 * The MCP inspector's command line, as its users have it: it lists the tools, finds no fault in their schemas, and calls
 * each. It is fetched when first wanted, for its hundred packages are of no use to anything else here.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { findPackage } from '../../../bench/harness/optional.ts'
import { MCP_TOOLS, type ToolName } from '../../../schemas/knowledge/mcp.ts'
import { draft, startWiki } from './support.ts'

const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/tollgate-test', import.meta.url))
const VERSION = '2.12.0'
/** Its exit codes: a tool that answers with an error; a server that wants to be logged in to. */
const TOOL_IS_ERROR = 5
const AUTH_REQUIRED = 3

const { folder } = findPackage(CACHE, '@modelcontextprotocol/inspector', VERSION, {})
const program = join(folder, 'clients/cli/build/index.js')
const home = t.testdir()

const wiki = await startWiki(t)
const reader = await wiki.newReader()
const source = await wiki.putSource('tides.pdf', 'a file', 'application/pdf')
const ids = await wiki.write(reader.accountId, [
  draft('tides.md', { title: 'Tides', tags: ['sea'], links: ['Moon'], source }),
  draft('moon.md', { title: 'Moon', summary: 'It pulls at the sea', tags: ['sky'] }),
])
const [tides, moon] = [ids.get('Tides')!, ids.get('Moon')!]

interface Inspected {
  readonly code: number
  readonly out: string
  /** What it has to complain of. */
  readonly said: string
}

/** No catalog or login of the user who runs the tests takes part, and nothing of theirs is written to. */
const inspect = (method: string, ...more: string[]): Promise<Inspected> =>
  inspectAs(`Authorization: Bearer ${reader.key}`, method, ...more)
const inspectAs = (header: string, method: string, ...more: string[]): Promise<Inspected> =>
  new Promise((resolve) => {
    const args = [program, `${wiki.baseUrl}/mcp`, '--transport', 'http', '--header', header]
    execFile(
      process.execPath,
      [...args, '--method', method, '--format', 'json', ...more],
      { env: { HOME: home, PATH: process.env.PATH } },
      (error, out, said) => resolve({ code: error === null ? 0 : Number(error.code), out, said }),
    )
  })

const callTool = (name: ToolName, args: Record<string, unknown>): Promise<Inspected> =>
  inspect('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args))

t.test('it lists the tools, and finds none of their schemas hard to carry over', async (t) => {
  const { code, out, said } = await inspect('tools/list', '--strict')
  t.equal(code, 0)
  t.notMatch(said, /warning|error/i)
  const { result } = JSON.parse(out) as { result: { tools: { name: string }[] } }
  t.same(
    result.tools.map(({ name }) => name),
    Object.keys(MCP_TOOLS),
  )
})

t.test('it calls each tool', async (t) => {
  const calls: { readonly [Name in ToolName]: readonly [given: object, answered: object] } = {
    search_wiki: [{ q: 'tides' }, { results: [{ id: tides }] }],
    read_page: [{ id: tides }, { id: tides, outgoing_links: [{ id: moon }], source: { locator: 'page 3' } }],
    read_pages: [{ ids: [moon, 'page_none'] }, { pages: [{ id: moon }], missing: ['page_none'] }],
    list_by_tag: [{ tag: 'sky' }, { pages: [{ id: moon }] }],
    backlinks: [{ id: moon }, { pages: [{ id: tides }] }],
    get_source: [{ id: tides }, { filename: 'tides.pdf', url: /^http/ }],
  }
  for (const name of Object.keys(calls) as ToolName[]) {
    const [given, answered] = calls[name]
    const { code, out, said } = await callTool(name, given as Record<string, unknown>)
    t.same([code, said], [0, ''], name)
    t.match(JSON.parse(out), { result: { structuredContent: answered } }, name)
  }
})

t.test('it tells refusals for what they are', async (t) => {
  t.match(await callTool('read_page', { id: 'page_none' }), {
    code: TOOL_IS_ERROR,
    out: /There is no page/,
  })
  t.match(await inspectAs('Authorization: Bearer x', 'tools/list'), { code: AUTH_REQUIRED })
})
