import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withEngines } from '../../../src/cli/engines.ts'
import { readSettings } from '../../../src/config/settings.ts'
import { excessOf } from '../../../src/postgres/roles.ts'
import { testDataDir } from '../../support/engines.ts'
import { tollgate } from './support.ts'

const dir = await testDataDir(t)
const env = { TOLLGATE_DATA_DIR: dir }

t.test('three commands at once take their turns with one database and leave nothing running', async (t) => {
  const outcomes = await Promise.all(
    ['A', 'B', 'C'].map((name) => tollgate(['account', 'create', '--name', name, '--json'], env)),
  )
  for (const { code, stderr } of outcomes) t.same({ code, stderr }, { code: 0, stderr: '' })
  t.same(processesOf(dir), [])
  const { stdout } = await tollgate(['account', 'list', '--json'], env)
  const names = JSON.parse(stdout).map(({ name }: { name: string }) => name)
  t.same(names.sort(), ['A', 'B', 'C'])
  t.equal(statSync(join(dir, 'master-key')).mode & 0o777, 0o600)
  t.equal(readFileSync(join(dir, 'lock'), 'utf8'), '')
})

t.test('a command that creates the data directory says so', async (t) => {
  const missing = join(dir, 'misspelt')
  const { code, stdout, stderr } = await tollgate(['account', 'list'], { TOLLGATE_DATA_DIR: missing })
  t.same({ code, stdout }, { code: 0, stdout: 'none\n' })
  t.equal(
    stderr,
    `There was no data directory ${missing}: a new one is created, without any account. Set TOLLGATE_DATA_DIR if yours is elsewhere.\n`,
  )
})

t.test('a command has the role of the service in its own database', async (t) => {
  await withEngines(readSettings(env), ['postgres'], async ({ databaseUrl }) =>
    t.same(await excessOf(databaseUrl ?? ''), []),
  )
})

t.test('the audit starts what it needs and stops it again', async (t) => {
  const { code, stdout } = await tollgate(['wallet', 'verify', '--json'], env)
  t.equal(code, 0)
  t.same(JSON.parse(stdout), { ok: true, accounts: 3, entries: 3, differences: [] })
  t.same(processesOf(dir), [])
})

t.test('channels of the demonstration: the simulated provider is started to be asked', async (t) => {
  const { code, stdout } = await tollgate(['channels', '--json'], {
    ...env,
    TOLLGATE_CONFIG: demonstration(),
  })
  t.equal(code, 0)
  t.match(
    JSON.parse(stdout).map(({ id, health }: { id: string; health: string }) => [id, health]),
    [
      ['here', 'reachable'],
      ['gone', 'unreachable'],
      ['off', 'off'],
    ],
  )
  t.same(processesOf(dir), [])
})

t.test('config check lists every problem with its place and exits 1', async (t) => {
  const sound = await tollgate(['config', 'check', demonstration(), '--json'], env)
  t.equal(sound.code, 0)
  t.match(JSON.parse(sound.stdout), {
    ok: true,
    models: 1,
    channels: 3,
    problems: { length: 0 },
    warnings: { length: 0 },
  })
  const file = join(dir, 'broken.yaml')
  writeFileSync(file, 'models:\n  - id: a\n    pricing: { unit: parsec }\ntrial_credit: lots\n')
  const broken = await tollgate(['config', 'check', file, '--json'], env)
  t.equal(broken.code, 1)
  const { ok, problems } = JSON.parse(broken.stdout)
  t.equal(ok, false)
  t.match(
    problems.map(({ line, field }: { line: number; field: string }) => [line, field]),
    [
      [3, 'models[0].pricing.unit'],
      [4, 'trial_credit'],
    ],
  )
  const text = await tollgate(['config', 'check', file], env)
  t.equal(text.code, 1)
  t.match(text.stdout, `${file}:3:`)
})

function demonstration(): string {
  const file = join(dir, 'channels.yaml')
  const channel = (id: string, base: string, key: string) =>
    `  - { id: ${id}, protocol: chat-completions, base_url: "${base}", api_key: "${key}", models: { a: b } }\n`
  writeFileSync(
    file,
    'models:\n  - { id: a, pricing: { unit: 1M_tokens, input: "1", output: "1" } }\nchannels:\n' +
      channel('here', '${TOLLGATE_SIMULATOR_URL}/v1', 'k') +
      channel('gone', 'http://127.0.0.1:9/v1', 'k') +
      channel('off', 'http://127.0.0.1:9/v1', ''),
  )
  return file
}

/** Processes whose command line or working folder is in the data directory. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)
      } catch {
        return false
      }
    })
}
