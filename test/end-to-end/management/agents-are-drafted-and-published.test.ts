/** An agent is written, edited as a draft, and published; its key answers by what is in force. */
import t from 'tap'
import { eventually } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { callConfig, say } from '../support.ts'

const FILE = { name: 'Clerk', model: 'fast', persona: 'You are a clerk.' }

t.test('agents', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
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
    await eventually('its key works', async () => (await call()) === 200 || undefined)
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
    t.equal(await call(), 200, 'the draft is not in force')
    await owner.send('PUT', `${path}/draft`, { file: edited })
    const { body: published } = await owner.send('POST', `${path}/publish`, {})
    t.match(published, { draft: null, file: { persona: edited.persona } })
    t.match((await owner.send('GET', `/agents?account_id=${account_id}`)).body.data, [{ id: agent.id }])
    const acts = await service.database.listAudit({ subjectId: agent.id, action: 'agent.draft', limit: 10 })
    t.equal(acts.length, 3)
    t.match(acts, Array(3).fill({ actor: `user:${owner.user.id}` }))
  })

  await t.test('bad input, strangers, and the end', async (t) => {
    t.match(await owner.send('PUT', `${path}/draft`, { file: { ...FILE, persona: '' } }), { status: 400 })
    t.match(await owner.send('PUT', `${path}/draft`, { file: { ...FILE, odd: 1 } }), { status: 400 })
    const refused = await stranger.send('GET', path)
    t.equal(refused.status, 404)
    t.notMatch(refused.body.error.message, account_id, 'a stranger learns no account')
    t.match((await owner.send('POST', `${path}/unpublish`, {})).body, { state: 'draft' })
    await eventually('its key is refused', async () => (await call()) === 403 || undefined)
    t.match((await owner.send('DELETE', path)).body, { state: 'deleted' })
    t.match(await owner.send('PUT', `${path}/draft`, { file: FILE }), { status: 409 })
    t.match(await owner.send('POST', `${path}/publish`, {}), { status: 409 })
    t.same((await owner.send('GET', `/agents?account_id=${account_id}`)).body.data, [])
  })
})
