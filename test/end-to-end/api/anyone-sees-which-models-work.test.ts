/** `GET /v1/status` says to everybody which models work, from memory, without numbers and names of providers. */
import t from 'tap'
import { type ServiceStatus, serviceStatus } from '../../../schemas/status.ts'
import { signIn } from '../../support/manage.ts'
import { startService, testConfig, until } from '../../support/service.ts'
import { say } from '../support.ts'

const FAILURES = 3
/** With them, the failures are one call in twenty. */
const SUCCESSES = 57
const AT_ONCE = 8
const FLOOD = 400

const CONFIG = testConfig({
  falling: { simulate: `fault=status:500,times=${FAILURES}` },
  steady: { simulate: 'tokens=1' },
  quiet: {},
  unserved: { served: false },
  placeholder: { extra: 'callable: false', served: false },
})

type Model = ServiceStatus['models'][number]

t.test('status', async (t) => {
  const service = await startService(t, { config: CONFIG })
  const { baseUrl, engines, database } = service
  const { key } = await service.newKey('1000000')
  const ask = () => fetch(`${baseUrl}/v1/status`)
  const read = async (): Promise<ServiceStatus> => serviceStatus.parse(await (await ask()).json())
  const find = async (id: string): Promise<Model> => (await read()).models.find((one) => one.id === id)!
  const call = (model: string, more: object = {}) =>
    service.chat(key, { model, messages: say('hi'), max_tokens: 1, ...more })
  const operator = await signIn(service, { role: 'operator' })

  await t.test('without calls, nothing is known of a model, except that no channel has it', async (t) => {
    const response = await ask()
    t.equal(response.status, 200)
    t.equal(response.headers.get('cache-control'), 'public, max-age=10')
    const { models, status } = (await response.json()) as ServiceStatus
    t.strictSame(
      models.map((model) => [model.id, model.status, model.success_rate]),
      [
        ['falling', 'no_recent_calls', null],
        ['steady', 'no_recent_calls', null],
        ['quiet', 'no_recent_calls', null],
        ['unserved', 'failing', null],
      ],
    )
    t.equal(status, 'failing', 'the worst one')
    t.equal(models[0]!.days.length, 30)
    t.equal(models[0]!.days.at(-1)!.date, new Date().toISOString().slice(0, 10))
  })

  await t.test('a model fails from the first failures on; mistakes of customers do not count', async (t) => {
    for (let i = 0; i < FAILURES; i++) t.equal((await call('falling')).status, 500)
    t.equal((await call('steady')).status, 200)
    const poor = await service.newKey('0')
    t.equal((await service.chat(poor.key, { model: 'steady', messages: say('hi') })).status, 402)
    t.equal((await call('steady', { temperature: 'hot' })).status, 400)
    t.equal((await call('steady', { messages: [] })).status, 400)
    await until('it fails', async () => (await find('falling')).status === 'failing')
    t.match(await find('falling'), { success_rate: 0 })
    await until('the other works', async () => (await find('steady')).status === 'operational')
    t.match(await find('steady'), { success_rate: 100 })
    t.equal((await find('steady')).days.at(-1)!.success_rate, 100)
    t.equal((await find('falling')).days.at(-1)!.success_rate, 0)
    t.equal((await find('quiet')).days.at(-1)!.success_rate, null)
  })

  await t.test('it works again once its newest calls succeed', async (t) => {
    for (let done = 0; done < SUCCESSES; done += AT_ONCE) {
      const some = Array.from({ length: Math.min(AT_ONCE, SUCCESSES - done) }, () => call('falling'))
      for (const { status } of await Promise.all(some)) t.equal(status, 200)
    }
    await until('it works', async () => (await find('falling')).status === 'operational')
    t.match(await find('falling'), { success_rate: 95 })
  })

  await t.test('a model whose channels are paused fails', async () => {
    await operator.send('POST', '/channels/simulated/pause', {})
    await until('it fails', async () => (await find('steady')).status === 'failing')
    await operator.send('POST', '/channels/simulated/resume', {})
    await until('it works', async () => (await find('steady')).status === 'operational')
  })

  await t.test('an operator posts a note, updates it, and ends it', async (t) => {
    const note = { text: 'Slow answers.', severity: 'degraded', models: ['falling'] }
    const headers = { 'idempotency-key': `note-${process.pid}` }
    const posted = await operator.send('POST', '/installation/status-notes', note, headers)
    t.match(posted, { status: 200, body: { ...note, id: /^note_/, resolved_at: null, updates: [] } })
    const { id } = posted.body
    const again = await operator.send('POST', '/installation/status-notes', note, headers)
    t.equal(again.body.id, id, 'posted once')
    await until('it is public', async () => (await read()).notes.length === 1)
    t.strictSame(Object.keys((await read()).notes[0]!).sort(), [
      'begins_at',
      'ends_at',
      'id',
      'models',
      'resolved_at',
      'severity',
      'text',
      'updates',
    ])
    const path = `/installation/status-notes/${id}`
    t.match(await operator.send('POST', `${path}/updates`, { text: 'We know why.', severity: 'outage' }), {
      body: { severity: 'outage', updates: [{ text: 'We know why.', at: String }] },
    })
    t.match(await operator.send('POST', `${path}/resolve`, { text: 'Over.' }), {
      body: { severity: 'outage', resolved_at: String, updates: [{}, { text: 'Over.' }] },
    })
    t.match(await operator.send('POST', `${path}/resolve`, {}), { status: 409 })
    t.match(await operator.send('POST', '/installation/status-notes/note_x/resolve', {}), { status: 404 })
    t.same((await operator.send('GET', '/installation/status-notes')).body.data, [])
    t.match((await operator.send('GET', '/installation/status-notes?open=false')).body.data, [{ id }])
    await until('its end is public', async () => (await read()).notes[0]?.resolved_at !== null)
    const acts = await database.auditRecord.list({ subjectId: id, limit: 5 })
    t.same(
      acts.map(({ action, actor }) => [action, actor]),
      ['resolve', 'update', 'post'].map((verb) => [`status_note.${verb}`, `user:${operator.user.id}`]),
    )
  })

  await t.test('a note about an unknown model, or that ends before it begins, is refused', async (t) => {
    const post = (more: object) =>
      operator.send('POST', '/installation/status-notes', { text: 'Work.', ...more })
    t.match(await post({ models: ['none'] }), { status: 400, body: { error: { message: /^models: / } } })
    t.match(await post({ ends_at: '2026-01-01T00:00:00Z' }), { body: { error: { message: /^ends_at: / } } })
    t.match(await post({ text: ' ' }), { body: { error: { message: /^text: / } } })
    const customer = await signIn(service)
    t.match(await customer.send('POST', '/installation/status-notes', { text: 'Hi.' }), { status: 403 })
  })

  await t.test('strangers learn of no account, channel, provider or number of calls', async (t) => {
    const text = await (await ask()).text()
    for (const secret of ['simulated', 'sim-', 'acc_', 'usr_', 'key_', operator.user.id, 'test@', '57', '60'])
      t.notMatch(text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z|"note_\w+"|\d{4}-\d\d-\d\d/g, ''), secret)
  })

  await t.test(
    'while ClickHouse is down, the last answer stays, and many who ask cost nothing',
    async (t) => {
      const before = await read()
      await engines.stopEngine('clickhouse')
      const answers = await Promise.all(Array.from({ length: FLOOD }, read))
      for (const one of answers) t.strictSame(one.models, before.models)
      const note = await operator.send('POST', '/installation/status-notes', { text: 'The log is down.' })
      await until('the note is public', async () => (await read()).notes[0]?.id === note.body.id)
      t.ok((await read()).measured_at >= before.measured_at)
      t.strictSame((await read()).models, before.models)
      await service.kill()
      await service.start()
      const response = await fetch(`${service.baseUrl}/v1/status`)
      t.equal(response.status, 503)
      t.match(await response.json(), { error: { code: 'service_unavailable' } })
      await engines.startEngine('clickhouse')
      await until(
        'it is known again',
        async () => (await fetch(`${service.baseUrl}/v1/status`)).status === 200,
      )
    },
  )
})
