/** A key is rotated while its clients go on calling, over two gateway workers, one of which is killed. */

import t from 'tap'
import { Agent } from 'undici'
import { startEngines } from '../../support/engines.ts'
import { signIn } from '../../support/manage.ts'
import { eventually, startService, until } from '../../support/service.ts'
import { childrenOf, isRunning } from '../chaos/processes.ts'
import { callConfig, errorOf, say } from '../support.ts'

const CLIENTS = 6
const config = callConfig({ fast: { simulate: 'tokens=1' } })

t.test('rotation under calls', async (t) => {
  const engines = await startEngines(t)
  const service = await startService(t, { engines, config, env: { TOLLGATE_WORKERS: '2' } })
  const owner = await signIn(service)
  const account_id = owner.user.accountId
  const operator = await signIn(service, { role: 'operator' })
  await operator.send('POST', `/accounts/${account_id}/adjustments`, { amount: '1000000', reason: 'a test' })
  const newKey = async () =>
    (await owner.send('POST', '/keys', { account_id, name: 'program', account_logs: true })).body
  const rotate = async (id: string, grace_seconds: number, headers = {}) =>
    (await owner.send('POST', `/keys/${id}/rotate`, { grace_seconds }, headers)).body
  /** Calls on a separate connection until it is stopped. */
  const client = (secret: () => string) => {
    const dispatcher = new Agent({ connections: 1 })
    const statuses: number[] = []
    let isStopped = false
    const running = (async () => {
      while (!isStopped) {
        const init = { dispatcher } as object
        const response = await service.chat(secret(), { model: 'fast', messages: say('hi') }, init)
        await response.arrayBuffer()
        statuses.push(response.status)
      }
      await dispatcher.close()
    })()
    const stop = async () => {
      isStopped = true
      await running
      return statuses
    }
    return { statuses, stop }
  }
  const moreCalls = (clients: ReadonlyArray<ReturnType<typeof client>>, count: number) => {
    const before = clients.map(({ statuses }) => statuses.length)
    return until('each client calls', () =>
      clients.every(({ statuses }, at) => statuses.length >= before[at]! + count),
    )
  }
  const call = (key: string) => service.chat(key, { model: 'fast', messages: say('hi') })
  const isRefusedEverywhere = async (secret: string) => {
    const responses = await Promise.all(Array.from({ length: 8 }, () => call(secret)))
    return responses.every(({ status }) => status === 401) ? responses[0] : undefined
  }

  await t.test('no call fails from the rotation to the end of the former secret', async (t) => {
    const { id, key } = await newKey()
    const secrets = Array.from({ length: CLIENTS }, () => key as string)
    const clients = secrets.map((_, at) => client(() => secrets[at]!))
    await moreCalls(clients, 5)
    const rotated = await rotate(id, 3)
    t.match(rotated, { id, former_secret: { key_prefix: key.slice(0, 20), successor_used_at: null } })
    await moreCalls(clients, 5)
    t.match((await owner.send('GET', `/keys/${id}`)).body.former_secret, { successor_used_at: null })
    for (const at of secrets.keys()) {
      secrets[at] = rotated.key
      await moreCalls(clients, 1)
    }
    const statuses = (await Promise.all(clients.map(({ stop }) => stop()))).flat()
    t.same([...new Set(statuses)], [200], `${statuses.length} calls`)
    const shown = await eventually('the first use is noted', async () => {
      const { former_secret } = (await owner.send('GET', `/keys/${id}`)).body
      return former_secret.successor_used_at === null ? undefined : former_secret
    })
    t.equal(Date.parse(shown.ends_at) - Date.parse(shown.successor_used_at), 3000)
    const refused = await eventually('the former secret has ended', () => isRefusedEverywhere(key))
    t.match(await errorOf(refused!), {
      code: 'invalid_api_key',
      message: 'API key was rotated: this secret of it has ended. Use the new secret.',
    })
    t.ok(Date.now() >= Date.parse(shown.ends_at), 'and not before')
    t.equal((await call(rotated.key)).status, 200)
    const rows = await service.logs(rotated.key, (found) => found.length >= 20, '&limit=20')
    t.same([...new Set(rows.map(({ key_id }) => key_id))], [id], 'all rows have the id of the key')
  })

  await t.test('its end is enforced at the instant while PostgreSQL is away', async (t) => {
    const { id, key } = await newKey()
    const rotated = await rotate(id, 2)
    await until('every worker knows both secrets', async () => {
      const responses = await Promise.all(
        Array.from({ length: 12 }, (_, at) => call(at % 2 ? key : rotated.key)),
      )
      const { former_secret } = (await owner.send('GET', `/keys/${id}`)).body
      return former_secret.successor_used_at !== null && responses.every(({ status }) => status === 200)
    })
    await Promise.all(Array.from({ length: 12 }, () => call(key)))
    await engines.stopEngine('postgres')
    await eventually('the former secret has ended', () => isRefusedEverywhere(key))
    t.equal((await call(rotated.key)).status, 200, 'the new one is served')
    await engines.startEngine('postgres')
  })

  await t.test('gateways that are killed at the first use lose nothing', async (t) => {
    const { id, key } = await eventually('PostgreSQL is back', async () => {
      const made = await newKey()
      return made.key === undefined ? undefined : made
    })
    const rotated = await rotate(id, 0)
    t.equal((await call(rotated.key)).status, 200)
    const gateways = childrenOf(service.pid(), 'gateway')
    for (const pid of gateways) process.kill(pid, 'SIGKILL')
    await until('they are gone', () => !gateways.some(isRunning))
    await eventually('the next ones serve the new secret, and note its use', async () => {
      const response = await call(rotated.key).catch(() => null)
      return response?.status === 200 ? isRefusedEverywhere(key) : undefined
    })
    t.match((await owner.send('GET', `/keys/${id}`)).body.former_secret, { successor_used_at: /Z$/ })
  })

  await t.test('a rotation that is sent twice is done once, and the end can be set by hand', async (t) => {
    const { id, key } = await newKey()
    const once = { 'idempotency-key': 'rotate-once' }
    const [first, second] = [await rotate(id, 60, once), await rotate(id, 60, once)]
    t.equal(first.key, second.key)
    const again = await rotate(id, 60)
    t.not(again.key, first.key, 'the secret that nobody used is replaced')
    t.equal((await call(first.key)).status, 401)
    t.equal((await call(again.key)).status, 200)
    await until('its use is noted', async () => {
      const { status, body } = await owner.send('POST', `/keys/${id}/rotate`, {})
      return status === 409 && /End the former one first/.test(body.error.message)
    })
    t.equal((await call(key)).status, 200, 'the former one works')
    t.equal((await owner.send('POST', `/keys/${id}/end-former-secret`, {})).status, 200)
    await eventually('it has ended', () => isRefusedEverywhere(key))
    t.equal((await owner.send('POST', `/keys/${id}/rotate`, { grace_seconds: 604_801 })).status, 400)
    t.equal((await owner.send('POST', `/keys/${id}/revoke`, {})).status, 200)
    await eventually('revoking ends every secret', () => isRefusedEverywhere(again.key))
    t.match(await errorOf(await call(key)), { message: 'API key has been revoked.' })
  })

  await t.test('an agent key is rotated, too', async (t) => {
    const { body: organization } = await owner.send('POST', '/organizations', { name: 'Acme' })
    await operator.send('POST', `/accounts/${organization.id}/adjustments`, {
      amount: '1000000',
      reason: 'a test',
    })
    const file = { name: 'Clerk', model: 'fast', persona: 'You are a clerk.' }
    const { body: agent } = await owner.send('POST', '/agents', { account_id: organization.id, file })
    await owner.send('POST', `/agents/${agent.id}/publish`, {})
    const wanted = { account_id: organization.id, name: 'desk', kind: 'agent', agent_id: agent.id }
    const { body: made } = await owner.send('POST', '/keys', { ...wanted, spend_cap: '500000' })
    const rotated = await rotate(made.id, 60)
    t.match(rotated, { kind: 'agent', agent_id: agent.id, spend_cap: '500000' })
    for (const secret of [made.key, rotated.key]) t.equal((await call(secret)).status, 200)
  })
})
