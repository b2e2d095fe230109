/** Two services on one data directory, each in a PID namespace of its own, as two containers on one volume are. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { type Teardown, testDataDir } from '../../support/engines.ts'
import { IN_PID_NAMESPACE, whyNoPidNamespace } from '../../support/pid-namespace.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
const skip = whyNoPidNamespace() ?? false

interface Facts {
  readonly base_url: string
}

interface Service {
  readonly process: ChildProcess
  /** What it says when it has started; null when it ended before. */
  readonly facts: Promise<Facts | null>
  readonly ended: Promise<{ code: number | null; stderr: string }>
}

function serve(t: Teardown, dir: string): Service {
  const [program = '', ...args] = [...IN_PID_NAMESPACE, process.execPath, MAIN, 'serve', '--json']
  const env = { ...process.env, TOLLGATE_DATA_DIR: dir, TOLLGATE_PORT: '0', LOG_LEVEL: 'error' }
  const child = spawn(program, args, { env, cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ code, stderr }))
  const facts = (async () => {
    let stdout = ''
    for await (const chunk of child.stdout) {
      stdout += chunk
      if (stdout.includes('\n}\n') || /^\{.*\}\n$/s.test(stdout)) return JSON.parse(stdout) as Facts
    }
    return null
  })()
  return { process: child, facts, ended }
}

async function call(baseUrl: string, key: string): Promise<number> {
  const { status } = await fetch(`${baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo-chat', messages: [{ role: 'user', content: 'Hello!' }] }),
  })
  return status
}

/** Where the engines run: another service that started or ended one would write there. */
const engineRecords = (dir: string): readonly string[] =>
  [...readdirSync(join(dir, 'engines')).map((name) => `engines/${name}`), 'postgres/postmaster.pid'].map(
    (path) => readFileSync(join(dir, path), 'utf8'),
  )

t.test(
  'the second service starts nothing and deletes nothing, and says who holds it',
  { skip },
  async (t) => {
    const dir = await testDataDir(t)
    const first = serve(t, dir)
    const facts = await first.facts
    t.ok(facts, 'the first one runs')
    const { first_key: key } = JSON.parse(readFileSync(join(dir, 'run.json'), 'utf8'))
    const baseUrl = facts?.base_url ?? ''
    t.equal(await call(baseUrl, key), 200)

    const before = engineRecords(dir)
    const { code, stderr } = await serve(t, dir).ended
    t.equal(code, 1)
    t.match(
      stderr,
      /is in use by a service that cannot be seen from here: process \d+ on \S+ has held it since/,
    )
    t.same(engineRecords(dir), before)
    t.equal(await call(baseUrl, key), 200, 'the first one goes on')

    first.process.kill('SIGKILL')
    await first.ended
    const next = serve(t, dir)
    const again = await next.facts
    t.equal(
      await call(again?.base_url ?? '', key),
      200,
      'a service that was killed leaves the directory free',
    )
    const logs = await fetch(`${again?.base_url}/v1/logs`, { headers: { authorization: `Bearer ${key}` } })
    const { data } = (await logs.json()) as { data: readonly unknown[] }
    t.ok(data.length >= 2, 'with every booked call')
  },
)
