/** Metrics and `tollgate channels`: attempts, circuit breakers and last errors by channel; media calls; a refused file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { FAILURES_IN_A_ROW } from '../../../src/core/routing/circuit-breaker.ts'
import { tollgate } from '../../src/cli/support.ts'
import { eventually, until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { callConfig, post, say } from '../support.ts'

/** A service is lent to several tests: these channels are this one's alone. */
const [SOUND, BROKEN, PICTURES, UNUSED] = ['sound', 'broken', 'pictures', 'unused'].map(
  (name) => `watched-${name}-${process.pid}`,
)
const KEY = 'upstream-key-5f21c0de77aa'

const CONFIG = `
models:
  - { id: fine, pricing: { unit: 1M_tokens, input: "1", output: "1" } }
  - { id: picky, pricing: { unit: 1M_tokens, input: "1", output: "1" } }
  - { id: fails, pricing: { unit: 1M_tokens, input: "1", output: "1" } }
  - { id: image, endpoint_type: images_generations, pricing: { unit: image, per_unit: "1" } }
channels:
  - id: ${SOUND}
    protocol: chat-completions
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: ${KEY}
    models: { fine: sim-fine, picky: "sim-picky@fault=status:422" }
  - id: ${BROKEN}
    protocol: chat-completions
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: ${KEY}
    models: { fails: "sim-fails@fault=status:500" }
  - id: ${PICTURES}
    protocol: openai-images
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: ${KEY}
    models: { image: sim-image }
  - id: ${UNUSED}
    protocol: messages
    base_url: \${TEST_SIMULATOR_URL}
    api_key: ${KEY}
    models: { fine: sim-fine }
`

interface ChannelJson {
  readonly id: string
  readonly health: string
  readonly breaker: string | null
  readonly recent_attempts: number
  readonly recent_failures: number
  readonly last_error: string | null
  readonly last_error_at: string | null
  readonly processes: readonly { readonly process: string; readonly breaker: string }[]
}

t.test('operators', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { key } = await service.newKey('1000')
  const metrics = async () => (await fetch(`${service.baseUrl}/metrics`)).text()
  const has = (line: string) =>
    eventually(line, async () => ((await metrics()).split('\n').includes(line) ? true : undefined))
  const call = async (model: string) =>
    (await service.chat(key, { model, messages: say('hi') })).arrayBuffer()

  await t.test('count attempts by channel, and see a breaker open', async (t) => {
    await call('fine')
    await call('picky')
    for (let i = 0; i < FAILURES_IN_A_ROW; i++) await call('fails')
    const attempts = (channel: string, outcome: string, count: number) =>
      has(`tollgate_channel_attempts_total{channel="${channel}",outcome="${outcome}"} ${count}`)
    t.ok(await attempts(SOUND!, 'success', 1))
    t.ok(await attempts(SOUND!, 'refused', 1))
    t.ok(await attempts(BROKEN!, 'failed', FAILURES_IN_A_ROW))
    t.ok(await has(`tollgate_channel_breaker_open{channel="${SOUND}"} 0`))
    t.ok(await has(`tollgate_channel_breaker_open{channel="${BROKEN}"} 1`))
  })

  await t.test('find media calls in the same metrics, not only the refused', async (t) => {
    const calls = () =>
      metrics().then((text) => /tollgate_calls_total\{model="image",status="success"\} (\d+)/.exec(text))
    const before = Number((await calls())?.[1] ?? 0)
    const response = await post(service, key, '/v1/images/generations', { model: 'image', prompt: 'a fox' })
    t.equal(response.status, 200)
    await response.arrayBuffer()
    await until('counted', async () => Number((await calls())?.[1]) === before + 1)
    t.ok(await has(`tollgate_channel_attempts_total{channel="${PICTURES}",outcome="success"} 1`))
  })

  await t.test('ask what every process sees', async (t) => {
    const dir = await mkdtemp(join(tmpdir(), 'tollgate-'))
    t.teardown(() => rm(dir, { recursive: true, force: true }))
    const env = {
      TOLLGATE_DATA_DIR: dir,
      TOLLGATE_CONFIG: service.configPath,
      TEST_SIMULATOR_URL: service.engines.simulatorUrl,
      NATS_URL: service.engines.natsUrl,
    }
    const { code, stdout, stderr } = await tollgate(['channels', '--json'], env)
    t.same({ code, stderr }, { code: 0, stderr: '' })
    t.notMatch(stdout, KEY)
    const channels = new Map((JSON.parse(stdout) as ChannelJson[]).map((channel) => [channel.id, channel]))
    t.match(channels.get(SOUND!), {
      health: 'reachable',
      breaker: 'closed',
      recent_attempts: 2,
      recent_failures: 0,
    })
    const broken = channels.get(BROKEN!)
    t.match(broken, {
      breaker: 'open',
      recent_attempts: FAILURES_IN_A_ROW,
      recent_failures: FAILURES_IN_A_ROW,
      last_error: /^upstream_error: /,
      processes: [{ process: /^gateway \d+$/, breaker: 'open', open_until: String }],
    })
    t.ok(Date.now() >= Date.parse(broken?.last_error_at ?? ''))
    t.match(channels.get(PICTURES!), { processes: [{ process: 'settler+tasks', breaker: 'closed' }] })
    t.match(channels.get(UNUSED!), {
      breaker: 'closed',
      recent_attempts: 0,
      last_error: null,
      processes: { length: 0 },
    })
    const table = await tollgate(['channels'], env)
    t.match(table.stdout, /state +breaker +in_flight +recent_attempts/)
    t.notMatch(table.stdout, '(none)', 'a channel with one key has that')
    t.match(table.stdout, / one\b/)
  })

  await t.test('see that a configuration is refused, and that it is so no longer', async (t) => {
    t.ok(await has('tollgate_configuration_refused 0'))
    await writeFile(service.configPath, callConfig({ fine: {} }).replace('pricing:', 'pricings:'))
    t.ok(await has('tollgate_configuration_refused 1'))
    await writeFile(service.configPath, CONFIG)
    t.ok(await has('tollgate_configuration_refused 0'))
  })

  await t.test('see no breaker of a channel that was removed', async (t) => {
    const ofBroken = `tollgate_channel_breaker_open{channel="${BROKEN}"}`
    t.match(await metrics(), ofBroken)
    const channels = CONFIG.split(/(?=^ {2}- id: )/m)
    await writeFile(service.configPath, channels.filter((text) => !text.includes(BROKEN!)).join(''))
    await until('it is gone', async () => !(await metrics()).includes(ofBroken))
    await writeFile(service.configPath, CONFIG)
  })
})
