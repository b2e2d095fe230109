/** Operators pause, drain, resume and test a channel while calls run; the state outlives the process and is audited. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { tollgate } from '../../src/cli/support.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { commandEnv, eventually, until } from '../../support/service.ts'
import { say, UPSTREAM_KEY, upstreamCalls } from '../support.ts'

/** A service is lent to several tests: these are this one's alone. */
const CHANNEL = `held-${process.pid}`
const OTHER = `held-other-${process.pid}`
const MODEL = `held-model-${process.pid}`
const UPSTREAM = `sim-held-${process.pid}`
const PACED = 'tps=20,tokens=40'

const CONFIG = `
models:
  - { id: ${MODEL}, pricing: { unit: 1M_tokens, input: "1000000", output: "2000000" } }
channels:
  - id: ${CHANNEL}
    protocol: chat-completions
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: ${UPSTREAM_KEY}
    models: { ${MODEL}: "${UPSTREAM}@${PACED}" }
    cost: { ${MODEL}: { unit: 1M_tokens, input: "500000", output: "250000" } }
  - id: ${OTHER}
    protocol: chat-completions
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: ""
    models: { ${MODEL}: sim-other }
`

t.test('operators', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { key } = await service.newKey('1000000')
  const operator = await signIn(service, { role: 'operator' })
  const auditor = await signIn(service, { role: 'auditor' })
  const path = `/channels/${CHANNEL}`
  const act = async (name: string) => (await operator.send('POST', `${path}/${name}`, {})).body
  const show = async () => (await operator.send('GET', path)).body
  const call = () => service.chat(key, { model: MODEL, messages: say('hi'), stream: true })
  const received = async () =>
    (await upstreamCalls(service)).filter(({ model }) => model?.startsWith(UPSTREAM)).length
  const isRefused = () =>
    until('refused', async () => {
      const response = await call()
      await response.body?.cancel()
      return response.status === 503
    })

  await t.test('pause a channel: no new call reaches it, the running one ends', async (t) => {
    const running = await call()
    t.equal(running.status, 200)
    await until('in flight', async () => (await show()).in_flight === 1)
    t.match(await act('pause'), { id: CHANNEL, state: 'paused', held_by: `user:${operator.user.id}` })
    await isRefused()
    const before = await received()
    for (let i = 0; i < 5; i++) {
      const response = await call()
      t.equal(response.status, 503)
      t.match(await response.json(), { error: { code: 'no_channel_available' } })
    }
    t.equal(await received(), before)
    t.match(await running.text(), /\[DONE\]/, 'the running call is whole')
    await until('none in flight', async () => (await show()).in_flight === 0)
    const { processes } = await show()
    t.ok(processes.length >= 2, 'gateways and task workers report it')
    for (const { state } of processes) t.equal(state, 'paused')
    const metrics = await (await fetch(`${service.baseUrl}/metrics`)).text()
    t.match(metrics, `tollgate_channel_held{channel="${CHANNEL}"} 1`)
  })

  await t.test('test it while it is paused, and see what that costs', async (t) => {
    const tested = await act('test')
    t.match(tested, { id: CHANNEL, model: MODEL, ok: true, status: 200, error: null })
    t.equal(tested.cost, String(tested.input_tokens + 2 * tested.output_tokens))
    t.ok(Number(tested.cost) > 0)
    t.equal(Number(tested.upstream_cost), tested.input_tokens / 2 + tested.output_tokens / 4)
    t.match(await operator.send('POST', `/channels/${OTHER}/test`, {}), { status: 400 })
    t.match(await operator.send('POST', '/channels/none/test', {}), { status: 404 })
  })

  await t.test('drain it, and resume it', async (t) => {
    t.match(await act('drain'), { state: 'draining', drained: true })
    t.match(await act('resume'), { state: 'active', held_by: null, drained: false })
    const response = await eventually('served', async () => {
      const answered = await call()
      if (answered.status === 200) return answered
      await answered.body?.cancel()
      return undefined
    })
    t.match(await response.text(), /\[DONE\]/)
    const seen = await eventually('its latency', async () => {
      const channel = await show()
      return channel.latency_p50_ms === null ? undefined : channel
    })
    t.match(seen, { breaker: 'closed', error_rate: 0, recent_failures: 0 })
    const { body } = await operator.send('GET', '/channels')
    t.ok(body.data.some(({ id }: { id: string }) => id === CHANNEL))
    t.notMatch(JSON.stringify(body), UPSTREAM_KEY)
  })

  await t.test('do the same on the command line', async (t) => {
    const dir = await mkdtemp(join(tmpdir(), 'tollgate-'))
    t.teardown(() => rm(dir, { recursive: true, force: true }))
    const env = { ...commandEnv(service), TOLLGATE_DATA_DIR: dir }
    const run = async (...words: string[]) => {
      const { code, stdout, stderr } = await tollgate(['channels', ...words, '--json'], env)
      t.same({ code, stderr }, { code: 0, stderr: '' })
      return JSON.parse(stdout)
    }
    const asked = await tollgate(['channels', 'pause', CHANNEL], env)
    t.match(asked, { code: 1, stderr: `would leave ${MODEL} without a channel` }, 'it asks first')
    t.match(await run('pause', CHANNEL, '--yes'), { id: CHANNEL, state: 'paused' })
    await isRefused()
    const listed = (await run()) as { id: string; state: string }[]
    t.equal(listed.find(({ id }) => id === CHANNEL)?.state, 'paused')
    t.match(await run('test', CHANNEL), { ok: true, model: MODEL })
    t.match(await run('resume', CHANNEL), { state: 'active' })
  })

  await t.test('are in the audit record, and alone may do so', async (t) => {
    const entries = await service.database.auditRecord.list({ limit: 100 })
    const actions = entries.filter(({ subjectId }) => subjectId === CHANNEL).map(({ action }) => action)
    const byCommand = ['channel.pause', 'channel.test', 'channel.resume']
    t.same(actions.toReversed(), [
      'channel.pause',
      'channel.test',
      'channel.drain',
      'channel.resume',
      ...byCommand,
    ])
    t.match(await auditor.send('GET', path), { status: 200 })
    t.match(await auditor.send('POST', `${path}/pause`, {}), { status: 403 })
    const customer = await signIn(service)
    t.match(await customer.send('GET', '/channels'), { status: 403 })
  })
})
