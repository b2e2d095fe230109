/** Operators see failing channels from the first failure on, what a pause would do, alerts, and all payments. */
import t from 'tap'
import { until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { say } from '../support.ts'

const [BAD, GOOD] = [`bad-${process.pid}`, `good-${process.pid}`]
const [SHARED, ALONE] = [`shared-${process.pid}`, `alone-${process.pid}`]

const CONFIG = `
models:
  - { id: ${SHARED}, pricing: { unit: 1M_tokens, input: "1000000", output: "2000000" } }
  - { id: ${ALONE}, pricing: { unit: 1M_tokens, input: "1000000", output: "2000000" } }
channels:
  - id: ${BAD}
    protocol: chat-completions
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: test
    models: { ${SHARED}: "sim-a@fault=status:500", ${ALONE}: "sim-b@fault=status:503" }
  - id: ${GOOD}
    protocol: chat-completions
    base_url: \${TEST_SIMULATOR_URL}/v1
    api_key: test
    priority: 1
    models: { ${SHARED}: "sim-a@tokens=2" }
`

t.test('health', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { database } = service
  const { key } = await service.newKey('1000000')
  const operator = await signIn(service, { role: 'operator' })
  const customer = await signIn(service)
  const health = async () => (await operator.send('GET', '/installation/health')).body
  const find = async (channel: string) =>
    (await health()).channels.find(({ id }: { id: string }) => id === channel)

  await t.test(
    'a channel that fails is shown from the first failure on, although the customer got an answer',
    async (t) => {
      const response = await service.chat(key, { model: SHARED, messages: say('hi'), max_tokens: 2 })
      t.equal(response.status, 200, 'another channel answered')
      await until('it is shown', async () => (await find(BAD)) !== undefined)
      t.match(await find(BAD), {
        is_failing: true,
        state: 'active',
        last_hour: { attempts: 1, failures: 1 },
        last_day: { attempts: 1, failures: 1 },
        last_error: { code: String, message: String },
        last_success_at: null,
      })
      t.equal(await find(GOOD), undefined, 'one that works is not')
      await service.chat(key, { model: ALONE, messages: say('hi') })
      await until('both are counted', async () => (await find(BAD)).last_hour.failures >= 2)
      t.match(await customer.send('GET', '/installation/health'), { status: 403 })
    },
  )

  await t.test('the impact of a pause names the models that would have no channel', async (t) => {
    const impact = async (id: string) => (await operator.send('GET', `/channels/${id}/impact`)).body
    t.match(await impact(BAD), { orphaned_models: [ALONE], open_tasks: 0 })
    t.ok((await impact(BAD)).calls_last_hour >= 2)
    t.same((await impact(GOOD)).orphaned_models, [])
    await operator.send('POST', `/channels/${BAD}/pause`, {})
    t.same((await impact(GOOD)).orphaned_models, [SHARED], 'a paused channel counts no more')
    t.same((await impact(BAD)).orphaned_models, [])
    await operator.send('POST', `/channels/${BAD}/resume`, {})
  })

  await t.test('alerts are acknowledged once, with a note and in the audit record', async (t) => {
    await database.alerts.recordBreakers([{ channelId: BAD, isOpen: true }])
    const list = async (query = '') =>
      (await operator.send('GET', `/installation/alerts?limit=200${query}`)).body.data
    const [alert] = (await list()).filter(({ subject_id }: { subject_id: string }) => subject_id === BAD)
    t.match(alert, { type: 'channel.opened', acknowledged_at: null })
    const path = `/installation/alerts/${alert.id}/acknowledge`
    t.match(await operator.send('POST', path, { note: 'paused' }), {
      status: 200,
      body: { acknowledged_by: `user:${operator.user.id}`, acknowledgement: 'paused' },
    })
    t.match((await operator.send('POST', path, { note: 'again' })).body, { acknowledgement: 'paused' })
    t.notOk((await list()).some(({ id }: { id: string }) => id === alert.id))
    t.ok((await list('&open=false')).some(({ id }: { id: string }) => id === alert.id))
    const acts = await database.auditRecord.list({ subjectId: alert.id, limit: 5 })
    t.match(acts, [{ action: 'alert.acknowledge' }])
    t.equal(acts.length, 1)
    t.match(await operator.send('POST', '/installation/alerts/evt_x/acknowledge', {}), { status: 404 })
  })

  await t.test('accounts below zero are listed', async (t) => {
    const { account } = await database.accounts.create({ name: 'Below zero', credit: 0n })
    await database.wallets.adjust(account.id, -5_00000000n, { reason: 'a test' })
    const { negative_balances: negative } = await health()
    t.match(
      negative.find(({ account_id }: { account_id: string }) => account_id === account.id),
      { name: 'Below zero', balance: '-5' },
    )
    t.match((await operator.send('GET', '/installation/wallet-rules')).body, { confirm_above: String })
  })

  await t.test('payments of all accounts are found by account, id and state', async (t) => {
    const { account } = await database.accounts.create({ name: `Payer ${process.pid}`, credit: 0n })
    const price = { credits: 50_000_000_000n, amount: 500n, currency: 'usd' }
    const { id } = await database.payments.create({ accountId: account.id, kind: 'checkout', ...price })
    const list = async (query: string) => {
      const { body } = await operator.send('GET', `/installation/payments?${query}`)
      return body.data.map(({ id: one }: { id: string }) => one)
    }
    t.same(await list(`search=${encodeURIComponent(`payer ${process.pid}`)}`), [id])
    t.same(await list(`search=${id.slice(4)}`), [id])
    t.same(await list(`account_id=${account.id}&state=created`), [id])
    t.same(await list(`account_id=${account.id}&state=paid`), [])
    t.match((await operator.send('GET', `/installation/payments?search=${id}`)).body.data, [
      { account_name: account.name, intent_id: null },
    ])
  })
})
