/** `tollgate connect` beside a running service: what it writes works, and is taken back. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { CLIENTS } from '../../../schemas/clients.ts'
import { RealWiring } from '../../../src/cli/main.ts'
import { command } from '../../src/cli/support.ts'
import { borrowService } from '../../support/lend-services.ts'

const channel = (protocol: string, path: string, serve = '[]') =>
  `  - { id: ${protocol}, protocol: ${protocol}, base_url: "\${TEST_SIMULATOR_URL}${path}", api_key: k, serve: ${serve}, models: { sonata: sim-sonata } }`
const CONFIG = `
models:
  - { id: sonata, pricing: { unit: 1M_tokens, input: "1000000", output: "2000000" }, max_output_tokens: 100 }
channels:
${channel('chat-completions', '/v1', '[messages]')}
${channel('responses', '/v1')}
${channel('generate-content', '')}
`

/** A user's own settings, with fields that are overwritten. */
const OWN =
  '{\n    "theme": "dark",\n    "model": "mine",\n    "env": { "OTHER": "1", "ANTHROPIC_MODEL": "mine" },\n    "big": [1, 2]\n}'

t.test('clients are connected to a running service', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { accountId, key } = await service.newKey('100000')
  const environment = (t: Test) => ({
    HOME: t.testdir(),
    DATABASE_URL: service.engines.databaseUrl,
    TOLLGATE_CONFIG: service.configPath,
    TOLLGATE_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
    TEST_SIMULATOR_URL: service.engines.simulatorUrl,
  })
  const connect = (env: Record<string, string>, ...words: string[]) =>
    command(['connect', ...words, '--json'], new RealWiring(env))
  const common = ['--base-url', service.baseUrl, '--key', key]

  for (const [name, { protocol }] of Object.entries(CLIENTS))
    await t.test(`${name} is connected, calls, and is undone`, async (t) => {
      const env = environment(t)
      const { code, stdout, stderr } = await connect(env, name, ...common, '--yes')
      t.equal(code, 0, stderr)
      t.notMatch(stderr, key, 'the change is shown without the key')
      const { written, by_hand, ...answer } = JSON.parse(stdout)
      t.match(answer, { client: name, model: 'sonata', cost: /^[1-9][\d.]* credits$/, error: null }, protocol)
      const texts = written.map((path: string) => readFileSync(path, 'utf8')).join('')
      const byHand = by_hand.map(({ settings }: { settings: string }) => settings).join('')
      for (const value of [key, service.baseUrl]) t.match(texts + byHand, value)
      for (const path of written) t.equal(statSync(path).mode & 0o077, 0, 'only its owner reads it')
      if (written.length === 0) return
      const undone = await connect(env, name, '--undo', '--yes')
      t.match(undone, { code: 0 })
      t.same(JSON.parse(undone.stdout), { client: name, undone: written, kept: [], by_hand: [] })
      for (const path of written) t.notOk(existsSync(path), path)
      t.match(await connect(env, name, '--undo', '--yes'), { code: 1, stderr: /Nothing was written/ })
    })

  await t.test('a key is made after a yes, and a second run is undone with the first', async (t) => {
    const env = environment(t)
    const path = join(env.HOME, '.claude/settings.json')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, OWN)
    const words = ['claude', '--base-url', service.baseUrl, '--account', accountId]
    const countKeys = async () => (await service.database.keys.list(accountId, { limit: 100 })).length
    t.equal(await countKeys(), 1)
    t.match(await connect(env, ...words), { code: 1, stderr: /Add --yes to confirm. Nothing was changed/ })
    t.equal(await countKeys(), 1)
    t.equal(readFileSync(path, 'utf8'), OWN)
    const { code, stdout, stderr } = await connect(env, ...words, '--yes')
    t.equal(code, 0, stderr)
    t.match(JSON.parse(stdout), { key_id: /^key_/, cost: /credits/ })
    t.equal(await countKeys(), 2)
    t.match(await connect(env, 'claude', ...common, '--yes'), { code: 0 })
    t.match(readFileSync(path, 'utf8'), key)
    t.match(await connect(env, 'claude', '--undo', '--yes'), { code: 0 })
    t.equal(readFileSync(path, 'utf8'), OWN)
  })

  await t.test('a refused call is said, and a file with comments is left alone', async (t) => {
    const env = environment(t)
    const path = join(env.HOME, '.claude/settings.json')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '{ // mine\n}')
    const wrong = ['claude', '--base-url', service.baseUrl, '--key', 'sk-tollgate-wrong', '--yes']
    const { code, stdout } = await connect(env, ...wrong)
    t.equal(code, 1)
    t.match(JSON.parse(stdout), { written: [], by_hand: [{ path }], error: /^401: / })
    t.equal(readFileSync(path, 'utf8'), '{ // mine\n}')
  })
})
