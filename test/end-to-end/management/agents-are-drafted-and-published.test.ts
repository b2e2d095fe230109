/** An agent is written, edited as a draft, and published; its key answers by what is in force. */
import t from 'tap'
import { until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { callConfig, say } from '../support.ts'

const FILE = { name: 'Clerk', model: 'fast', persona: 'You are a clerk.' }

t.test('agents', async (t) => {
  const service = await borrowService(
    t,
    callConfig({ fast: { simulate: 'tokens=2' }, slow: { simulate: 'tokens=2' } }),
  )
  const owner = await signIn(service)
  const stranger = await signIn(service)
  const operator = await signIn(service, { role: 'operator' })
  const { body: organization } = await owner.send('POST', '/organizations', { name: 'Acme' })
  const account_id = organization.id
  await operator.send('POST', `/accounts/${account_id}/adjustments`, { amount: '100000', reason: 'a test' })
  const { body: agent, status } = await owner.send('POST', '/agents', { account_id, file: FILE })
  t.equal(status, 201)
  t.match(agent, { state: 'draft', draft: null, file: FILE })
  t.same(agent.warnings, [])
  const path = `/agents/${agent.id}`
  const { body: key } = await owner.send('POST', '/keys', {
    account_id,
    name: 'desk',
    kind: 'agent',
    agent_id: agent.id,
    spend_cap: '50000',
  })
  const call = async () =>
    (await service.chat(key.key, { model: 'fast', max_tokens: 2, messages: say('hello') })).status

  await t.test('nothing is in force before it is published', async (t) => {
    t.equal(await call(), 403)
    t.match((await owner.send('POST', `${path}/publish`, {})).body, { state: 'published', draft: null })
    await until('its key works', async () => (await call()) === 200)
  })

  await t.test('a draft changes nothing until it is published, and can be discarded', async (t) => {
    const edited = { ...FILE, persona: 'You are a better clerk.' }
    const { body } = await owner.send('PUT', `${path}/draft`, { file: edited })
    t.match(body, { state: 'published', file: { persona: FILE.persona }, draft: { persona: edited.persona } })
    t.match((await owner.send('DELETE', `${path}/draft`)).body, {
      draft: null,
      file: { persona: FILE.persona },
    })
    await owner.send('PUT', `${path}/draft`, { file: { ...edited, model: 'absent', knowledge: ['kb_none'] } })
    const { body: doubtful } = await owner.send('GET', path)
    t.equal(doubtful.warnings.length, 2, 'a model and a knowledge base that it cannot use')
    t.match(await owner.send('POST', `${path}/publish`, {}), {
      status: 409,
      body: { error: { message: /would be refused: .*no model "absent".*kb_none/ } },
    })
    t.equal(await call(), 200, 'the draft is not in force')
    await owner.send('PUT', `${path}/draft`, { file: edited })
    const { body: published } = await owner.send('POST', `${path}/publish`, {})
    t.match(published, { draft: null, file: { persona: edited.persona } })
    t.match((await owner.send('GET', `/agents?account_id=${account_id}`)).body.data, [{ id: agent.id }])
    const acts = await service.database.auditRecord.list({
      subjectId: agent.id,
      action: 'agent.draft',
      limit: 10,
    })
    t.equal(acts.length, 3)
    t.match(acts, Array(3).fill({ actor: `user:${owner.user.id}` }))
  })

  await t.test('a key that opens the draft tries it, published or not', async (t) => {
    const wanted = { account_id, name: 'try', kind: 'agent', agent_id: agent.id, opens_draft: true }
    const { body: trial } = await owner.send('POST', '/keys', wanted)
    t.match(trial, { kind: 'agent', opens_draft: true })
    t.match(await owner.send('POST', '/keys', { ...wanted, kind: 'console', agent_id: null }), {
      status: 400,
    })
    const modelOf = async (raw: string): Promise<string> => {
      const response = await service.chat(raw, { messages: say('hello'), max_tokens: 2 })
      return response.ok ? ((await response.json()) as { model: string }).model : String(response.status)
    }
    t.equal(await modelOf(trial.key), 'sim-fast', 'without a draft the agent as it is in force')
    const edited = { ...FILE, model: 'slow' }
    await owner.send('PUT', `${path}/draft`, { file: edited })
    await until('the draft answers', async () => (await modelOf(trial.key)) === 'sim-slow')
    t.equal(await modelOf(key.key), 'sim-fast', 'the other keys call what is in force')
    await owner.send('POST', `${path}/unpublish`, {})
    await until('other keys are refused', async () => (await modelOf(key.key)) === '403')
    t.equal(await modelOf(trial.key), 'sim-slow')
    await owner.send('DELETE', `${path}/draft`)
    await until('the draft is gone', async () => (await modelOf(trial.key)) === 'sim-fast')
  })

  await t.test('a file is replaced without a draft', async (t) => {
    await owner.send('POST', `${path}/publish`, {})
    const replaced = await owner.send('PUT', path, { file: { ...FILE, model: 'slow' } })
    t.match(replaced.body, { state: 'published', draft: null, file: { model: 'slow' } })
    t.match(await stranger.send('PUT', path, { file: FILE }), { status: 404 })
    await until('it is in force', async () => {
      const response = await service.chat(key.key, { messages: say('hello'), max_tokens: 2 })
      return response.ok && ((await response.json()) as { model: string }).model === 'sim-slow'
    })
  })

  await t.test('bad input, strangers, and the end', async (t) => {
    t.match(await owner.send('PUT', `${path}/draft`, { file: { ...FILE, persona: '' } }), { status: 400 })
    t.match(await owner.send('PUT', `${path}/draft`, { file: { ...FILE, odd: 1 } }), { status: 400 })
    const refused = await stranger.send('GET', path)
    t.equal(refused.status, 404)
    t.notMatch(refused.body.error.message, account_id, 'a stranger learns no account')
    t.match((await owner.send('POST', `${path}/unpublish`, {})).body, { state: 'draft' })
    await until('its key is refused', async () => (await call()) === 403)
    t.match((await owner.send('DELETE', path)).body, { state: 'deleted' })
    t.match(await owner.send('PUT', `${path}/draft`, { file: FILE }), { status: 409 })
    t.match(await owner.send('POST', `${path}/publish`, {}), { status: 409 })
    t.same((await owner.send('GET', `/agents?account_id=${account_id}`)).body.data, [])
  })
})
