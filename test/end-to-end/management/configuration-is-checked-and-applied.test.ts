/** An operator reads the configuration without its secrets, checks a proposal, and applies it. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { testConfig } from '../../support/service.ts'

const SECRET = 'api_key: a-secret-of-the-provider'

t.test('configuration', async (t) => {
  const config = testConfig({ fast: { input: '1000000' } }).replace('api_key: test', SECRET)
  const service = await borrowService(t, config)
  const operator = await signIn(service, { role: 'operator' })
  const auditor = await signIn(service, { role: 'auditor' })
  const { body: shown } = await operator.send('GET', '/configuration')
  t.match(shown, { is_writable: true, is_refused: false, digest: String })
  t.notMatch(shown.text, 'a-secret-of-the-provider')
  t.match(await auditor.send('GET', '/configuration'), { status: 200 })
  const dearer = shown.text.replace('input: "1000000"', 'input: "2000000"')

  await t.test('a proposal is compared with the file, and its problems have their place', async (t) => {
    const { body } = await operator.send('POST', '/configuration/check', { text: dearer })
    t.equal(body.ok, true)
    t.same(body.problems, [])
    t.same(body.difference.sections, [])
    t.same([body.difference.models.added, body.difference.models.removed], [[], []])
    const [model] = body.difference.models.changed
    t.match(model, { id: 'fast', fields: [{ name: 'pricing', before: /1000000/, after: /2000000/ }] })
    t.same(body.difference.channels.changed, [], 'a masked secret is no change')
    const broken = shown.text.replace('protocol: chat-completions', 'protocol: odd')
    const { body: refused } = await operator.send('POST', '/configuration/check', { text: broken })
    t.match(refused, {
      ok: false,
      problems: [{ line: Number, field: 'channels[0].protocol', message: String }],
    })
    t.match(
      await operator.send('POST', '/configuration/check', {
        text: `${shown.text}\nmetrics: { token: "********" }`,
      }),
      {
        body: { ok: false, problems: [{ message: /no such secret/ }] },
      },
    )
    t.match(await auditor.send('POST', '/configuration/check', { text: dearer }), { status: 403 })
  })

  await t.test('what is applied is soon in force, with its secrets and an audit entry', async (t) => {
    const apply = (text: string, digest: string) => operator.send('PUT', '/configuration', { text, digest })
    t.match(await apply('models: [', shown.digest), { status: 400, body: { error: { message: /line/ } } })
    t.match(await apply(dearer, 'another'), { status: 409 })
    const applied = await apply(dearer, shown.digest)
    t.match(applied, { status: 200, body: { digest: String } })
    t.match(await apply(dearer, shown.digest), { status: 409 }, 'the file is another one now')
    t.ok(readFileSync(service.configPath, 'utf8').includes('a-secret-of-the-provider'))
    await until('the new price', async () => {
      const response = await fetch(`${service.baseUrl}/api/v1/models/public`)
      const { models } = (await response.json()) as { models: { pricing: { input: string } }[] }
      return models[0]?.pricing.input === '2000000'
    })
    const [act] = await service.database.auditRecord.list({ subjectId: 'configuration', limit: 1 })
    t.match(act, { action: 'configuration.apply', actor: `user:${operator.user.id}` })
    t.notMatch(
      JSON.stringify(act, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
      'a-secret',
    )
  })

  await t.test('a key is removed from the middle of a masked list, and the others stay', async (t) => {
    const read = async () => (await operator.send('GET', '/configuration')).body
    const apply = async (change: (text: string) => string) => {
      const { text, digest } = await read()
      const answer = await operator.send('PUT', '/configuration', { text: change(text), digest })
      t.equal(answer.status, 200, JSON.stringify(answer.body))
    }
    await apply((text) => text.replace(/api_key: .*/, 'api_keys: [key-one, key-two, key-three]'))
    await apply((text) => {
      const [, first, , third] = /api_keys: \[(.+), (.+), (.+)\]/.exec(text)!
      return text.replace(/api_keys: .*/, `api_keys: [${third}, ${first}]`)
    })
    t.match(readFileSync(service.configPath, 'utf8'), /api_keys: \[key-three, key-one\]/)
    t.notMatch((await read()).text, 'key-')
  })
})
