/** Answers that read are compressed as the client accepts it; secrets, writes and streams of calls are not. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { MANAGE, signIn } from '../../support/manage.ts'
import { callConfig, say } from '../support.ts'

t.test('compression', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const owner = await signIn(service)
  const accountId = owner.user.accountId
  const NAME = 'a name that is long enough, and the same each time, '.repeat(3)
  for (let count = 0; count < 5; count += 1)
    await owner.send('POST', '/keys', { account_id: accountId, name: NAME.slice(0, 100) })
  const keys = `${MANAGE}/keys?account_id=${accountId}`
  const read = async (path: string, accepted: string) => {
    const response = await fetch(`${service.baseUrl}${path}`, {
      headers: { cookie: owner.cookie, 'x-csrf-token': owner.csrfToken, 'accept-encoding': accepted },
    })
    const { headers } = response
    const body = await response.text()
    return { body, coding: headers.get('content-encoding'), vary: headers.get('vary') }
  }
  const plain = await read(keys, 'identity')

  await t.test('as the client accepts it', async (t) => {
    t.match(plain, { coding: null, vary: 'accept-encoding' })
    t.equal(JSON.parse(plain.body).data.length, 5)
    for (const [accepted, coding] of [
      ['gzip, deflate, br', 'br'],
      ['gzip', 'gzip'],
      ['br;q=0, gzip', 'gzip'],
      ['deflate', null],
    ] as const)
      t.same(await read(keys, accepted), { ...plain, coding }, accepted)
  })

  await t.test('a short answer stays as it is', async (t) => {
    t.match(await read(`${MANAGE}/webhooks?account_id=${accountId}`, 'br'), { coding: null })
  })

  await t.test('so does what holds a secret', async (t) => {
    await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        owner.send('POST', '/organizations', { name: `${NAME.slice(0, 90)} ${index}` }),
      ),
    )
    const session = await read(`${MANAGE}/session`, 'br, gzip')
    t.ok(session.body.length > 1024)
    t.match(session, { coding: null, vary: null })
  })

  await t.test('so does a stream of a call', async (t) => {
    const { body: key } = await owner.send('POST', '/keys', { account_id: accountId, name: 'call' })
    const operator = await signIn(service, { role: 'operator' })
    const adjustment = { amount: '100000', reason: 'a test' }
    await operator.send('POST', `/accounts/${accountId}/adjustments`, adjustment)
    const response = await fetch(`${service.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key.key}`,
        'content-type': 'application/json',
        'accept-encoding': 'br, gzip',
      },
      body: JSON.stringify({ model: 'fast', stream: true, messages: say('hello '.repeat(500)) }),
    })
    t.equal(response.status, 200)
    t.equal(response.headers.get('content-encoding'), null)
    await response.text()
  })

  await t.test('files of the console', async (t) => {
    const page = await read('/console/', 'identity')
    const script = /"(\/console\/assets\/[^"]+\.js)"/.exec(page.body)?.[1] ?? ''
    const whole = await read(script, 'identity')
    t.ok(whole.body.length > 1024)
    for (const coding of ['br', 'gzip'])
      t.same(await read(script, coding), { ...whole, coding, vary: 'accept-encoding' })
  })
})
