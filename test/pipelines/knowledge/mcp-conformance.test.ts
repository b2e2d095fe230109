/** The conformance suite of the protocol's authors at `/mcp`, for the revisions with and without a handshake. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { findPackage } from '../../../bench/harness/optional.ts'
import { startWiki } from './support.ts'

t.test('mcp conformance', async (t) => {
  const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/tollgate-test', import.meta.url))
  const { folder } = findPackage(CACHE, '@modelcontextprotocol/conformance', '0.2.0-alpha.12', {})
  /** Most scenarios need a tool, prompt or resource of the suite's own server; these apply to any server. */
  const APPLYING = {
    '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
    '2026-07-28': [
      'server-stateless',
      'tools-list',
      'caching',
      'http-header-validation',
      'server-sse-multiple-streams',
      'dns-rebinding-protection',
    ],
  }
  /** What a check says that is about a tool or a list that this server does not have. */
  const OF_ITS_OWN_SERVER = /^Not testable: server does not list|returned JSON-RPC error -32601/

  const wiki = await startWiki(t)
  const { key } = await wiki.newReader()
  // The suite sends no key.
  const proxy = createServer((asked, answer) => {
    const headers = { ...asked.headers, authorization: `Bearer ${key}` }
    const forwarded = request(`${wiki.baseUrl}/mcp`, { method: 'POST', headers }, (response) => {
      answer.writeHead(response.statusCode!, response.headers)
      response.pipe(answer)
    })
    asked.pipe(forwarded)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => proxy.close())
  const { port } = proxy.address() as AddressInfo
  const origin = `http://127.0.0.1:${port}`
  wiki.allowedOrigins.push(origin)

  interface Check {
    readonly id: string
    readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED'
    readonly errorMessage?: string
  }

  for (const [revision, applying] of Object.entries(APPLYING))
    t.test(revision, async (t) => {
      const results = t.testdir()
      const args = ['server', '--url', `${origin}/mcp`, '--requirements', revision, '-o', results]
      // It fails in any case, for the scenarios that do not apply.
      await new Promise((resolve) =>
        execFile(process.execPath, [join(folder, 'dist/index.js'), ...args], { cwd: results }, resolve),
      )
      const readChecks = (scenario = ''): Check[] =>
        readdirSync(results)
          .filter((name) => name.startsWith(scenario === '' ? 'server-' : `server-${scenario}-`))
          .flatMap((name) => JSON.parse(readFileSync(join(results, name, 'checks.json'), 'utf8')) as Check[])
      for (const scenario of applying) {
        const checks = readChecks(scenario)
        t.ok(
          checks.some(({ status }) => status === 'SUCCESS'),
          scenario,
        )
        const failed = checks.filter(({ status }) => status === 'FAILURE')
        t.same(
          failed.filter(({ errorMessage = '' }) => !OF_ITS_OWN_SERVER.test(errorMessage)),
          [],
          scenario,
        )
      }
      const shapes = readChecks().filter(({ id }) => id === 'wire-schema-valid')
      t.ok(shapes.length > 20, 'messages of every scenario are compared with the schema')
      t.same(
        shapes.filter(({ status }) => status !== 'SUCCESS'),
        [],
      )
    })
})
