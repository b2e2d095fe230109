/**
 * Every operation of the reference, called by everyone who may not: visitors, strangers, roles that lack it, tokens
 * without its scope, API keys. The ids are those of an organization that exists.
 */
import t from 'tap'
import { MEMBER_ROLES } from '../../../schemas/accounts/organization.ts'
import { OPERATIONS } from '../../../schemas/management/index.ts'
import { type Operation, SCOPES, type Scope } from '../../../schemas/management/operation.ts'
import { borrowService } from '../../support/lend-services.ts'
import { MANAGE, signIn } from '../../support/manage.ts'
import { callConfig } from '../support.ts'

const REFUSALS = [401, 403, 404]
const FOREIGN_PAGE = { origin: 'https://evil.example' }

/** Values that pass the checks of each field, by its name; ids are added below. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  amount: '1',
  as: 'failed',
  email: 'someone@example.com',
  enabled: false,
  credits: '500',
  save_card: false,
  threshold: '1',
  monthly_maximum: '500',
  month: '2026-01',
  import_id: 'job_1',
  page_id: 'page_1',
  reader_id: 'agt_1',
  file: { name: 'taken over', model: 'fast', persona: 'taken over' },
  installation_role: 'operator',
  name: 'taken over',
  q: 'acc_',
  reason: 'because',
  ref: 'req_1',
  role: 'member',
  scopes: ['read'],
  spend_cap: '1',
  digest: 'none',
  text: 'models: []',
  balance_low: '5',
  since: '2026-01-01T00:00:00Z',
  url: 'https://receiver.example.com/hook',
}

interface Client {
  readonly name: string
  send(method: string, path: string, body?: object): Promise<{ readonly status: number }>
}

t.test('permissions', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const { baseUrl, database } = service
  const owner = await signIn(service)
  const { body: organization } = await owner.send('POST', '/organizations', { name: 'Acme' })
  const account_id: string = organization.id
  const join = async (role: string) => {
    const person = await signIn(service)
    const put = await owner.send('PUT', `/members/${person.user.accountId}`, { account_id, role })
    t.equal(put.status, 200)
    return { ...person, name: role }
  }
  const members = { admin: await join('admin'), billing: await join('billing'), member: await join('member') }
  const stranger = { ...(await signIn(service)), name: 'a stranger' }
  const auditor = { ...(await signIn(service, { role: 'auditor' })), name: 'an auditor' }

  const { body: key } = await owner.send('POST', '/keys', { account_id, name: 'theirs' })
  const { body: request } = await members.member.send('POST', '/key-requests', { account_id, name: 'mine' })
  const { body: token } = await owner.send('POST', '/tokens', {
    account_id,
    name: 'theirs',
    scopes: ['read'],
  })
  const file = { name: 'theirs', model: 'fast', persona: 'A clerk.' }
  const { body: agent } = await owner.send('POST', '/agents', { account_id, file })
  const { body: base } = await owner.send('POST', '/knowledge-bases', { account_id, name: 'theirs' })
  const invited = { account_id, email: 'new@example.com', role: 'member' }
  const { body: invitation } = await owner.send('POST', `/organizations/${account_id}/invitations`, invited)
  const { body: budget } = await owner.send('PUT', '/budgets', { account_id, amount: '5', period: 'week' })
  const { body: webhook } = await owner.send('POST', '/webhooks', {
    account_id,
    url: 'https://receiver.example.com/hook',
  })
  const { body: delivery } = await owner.send('POST', `/webhooks/${webhook.id}/test`, {})
  await database.payments.keepCustomer(account_id, 'cus_theirs')
  const payment = await database.payments.create({
    accountId: account_id,
    kind: 'checkout',
    credits: 50_000_000_000n,
    amount: 500n,
    currency: 'usd',
  })
  await database.payments.takeNotice({
    about: 'payment',
    event: 'paid',
    paymentId: payment.id,
    customerId: 'cus_theirs',
    sessionId: null,
    intentId: 'pi_theirs',
    amount: 500n,
    currency: 'usd',
  })
  const [receipt] = await database.payments.listReceipts([payment.id])
  const { body: sessions } = await owner.send('GET', '/me/sessions')
  const ids: Readonly<Record<string, string>> = {
    accounts: account_id,
    agents: agent.id,
    budgets: budget.id,
    calls: '1',
    channels: 'simulated',
    'installation/alerts': 'evt_1',
    'installation/lost-submits': 'vid_1',
    'installation/refused-payment-events': 'evt_1',
    'installation/status-notes': 'note_1',
    'installation/tasks': 'vid_1',
    'installation/tokens': token.id,
    invitations: invitation.id,
    jobs: 'job_1',
    journals: 'journal_1',
    'key-requests': request.id,
    keys: key.id,
    'knowledge-bases': base.id,
    'me/sessions': sessions.data[0].id,
    organizations: invitation.id,
    cards: 'pm_1',
    payments: payment.id,
    tasks: 'vid_1',
    tokens: token.id,
    users: owner.user.id,
    'webhook-deliveries': delivery.id,
    webhooks: webhook.id,
  }

  const bearer = (name: string, secret: string): Client => ({
    name,
    send: (method, path, body) =>
      fetch(`${baseUrl}${MANAGE}${path}`, {
        method,
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
  })
  const visitor: Client = {
    name: 'a visitor',
    send: (method, path, body) =>
      fetch(`${baseUrl}${MANAGE}${path}`, {
        method,
        headers: { 'content-type': 'application/json', origin: baseUrl },
        ...(body && { body: JSON.stringify(body) }),
      }),
  }
  const tokenOf = async (by: typeof owner, account: string, scopes: readonly Scope[]) => {
    const made = await by.send('POST', '/tokens', { account_id: account, name: 'test', scopes })
    return made.body.token as string
  }
  const foreign = await tokenOf(stranger, stranger.user.accountId, SCOPES)
  const without = new Map(
    await Promise.all(
      SCOPES.map(async (scope): Promise<[Scope, Client]> => {
        const others = SCOPES.filter((other) => other !== scope)
        return [scope, bearer(`a token without ${scope}`, await tokenOf(owner, account_id, others))]
      }),
    ),
  )
  const shut: readonly Client[] = [visitor, bearer('an API key', key.key)]

  /** Everyone who must be refused. */
  function othersOf({ allows, scope, method, isSecret }: Operation): readonly Client[] {
    if (allows === 'everyone') return []
    const tokens = [...shut, without.get(scope)!]
    if (allows === 'signed-in') return tokens
    const outside = [...tokens, stranger, bearer('a token of another account', foreign)]
    if (method !== 'GET' || isSecret) outside.push(auditor)
    const roles = Object.entries(members).filter(
      ([role]) => allows === 'operators' || !allows.includes(role as keyof typeof members),
    )
    return [...outside, ...roles.map(([, person]) => person)]
  }

  /** The path and the body of a request that would do it, to the organization. */
  function requestOf({ method, path, input }: Operation): { path: string; body: object | undefined } {
    const given: Record<string, unknown> = {
      ...SAMPLES,
      account_id,
      number: Number(receipt!.number),
      member_id: members.member.user.accountId,
      ...(path === '/jobs' && { kind: 'verify' }),
      ...(path === '/budgets' && { period: 'day' }),
    }
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      if (name !== 'id') return String(given[name])
      const kinds = Object.keys(ids).filter((kind) => path.startsWith(`/${kind}/`))
      if (kinds.length === 0) throw new Error(`add an id of ${path} to this test`)
      return ids[kinds.sort((a, b) => b.length - a.length)[0]!]!
    })
    const fields = Object.entries(input.shape).flatMap<[string, unknown]>(([name, schema]) =>
      path.includes(`{${name}}`) || (given[name] === undefined && schema.safeParse(undefined).success)
        ? []
        : [[name, given[name]]],
    )
    if (method !== 'GET' && method !== 'DELETE') return { path: filled, body: Object.fromEntries(fields) }
    const query = new URLSearchParams(fields.map(([name, value]): [string, string] => [name, String(value)]))
    return { path: `${filled}?${query}`, body: undefined }
  }

  await t.test('each operation of the reference says who may call it', async (t) => {
    const response = await fetch(`${baseUrl}/openapi.json`)
    const { paths } = (await response.json()) as { paths: Record<string, object> }
    const described = Object.entries(paths)
      .filter(([path]) => path.startsWith(`${MANAGE}/`))
      .flatMap(([path, methods]) =>
        Object.keys(methods)
          .filter((method) => method !== 'parameters')
          .map((method) => `${method.toUpperCase()} ${path.slice(MANAGE.length)}`),
      )
    const declared = OPERATIONS.map(({ method, path }) => `${method} ${path}`)
    t.same(described.sort(), declared.toSorted())
    for (const { allows, method, path } of OPERATIONS)
      t.ok(
        ['everyone', 'signed-in', 'operators'].includes(String(allows)) ||
          (Array.isArray(allows) && allows.every((role) => MEMBER_ROLES.includes(role))),
        `${method} ${path}`,
      )
  })

  await t.test('everyone else is refused', async (t) => {
    const before = await database.auditRecord.list({ accountId: account_id, limit: 200 })
    for (const operation of OPERATIONS) {
      if (operation.allows === 'everyone' || operation.path.startsWith('/me/')) continue
      const others = othersOf(operation)
      const { path, body } = requestOf(operation)
      const allowed: string[] = []
      for (const client of others) {
        const { status } = await client.send(operation.method, path, body)
        if (!REFUSALS.includes(status)) allowed.push(`${client.name}: ${status}`)
      }
      t.same(allowed, [], `${operation.method} ${operation.path}`)
    }
    const after = await database.auditRecord.list({ accountId: account_id, limit: 200 })
    t.equal(after.length, before.length, 'nothing was done')
  })

  await t.test('a member reads their keys and no others', async (t) => {
    t.equal((await members.member.send('GET', `/keys/${key.id}`)).status, 403)
    t.equal((await members.member.send('GET', `/keys?account_id=${account_id}`)).body.data.length, 0)
    t.equal((await members.admin.send('GET', `/keys/${key.id}`)).status, 200)
  })

  await t.test('a page of another origin is refused whatever its visitor may', async (t) => {
    const reached: string[] = []
    for (const operation of OPERATIONS) {
      if (operation.method === 'GET') continue
      const { method } = operation
      const { path, body } =
        operation.path.startsWith('/me/') || operation.allows === 'everyone'
          ? { path: operation.path.replaceAll(/\{\w+\}/g, 'x'), body: {} }
          : requestOf(operation)
      const { status } = await owner.send(method, path, method === 'DELETE' ? undefined : body, FOREIGN_PAGE)
      if (status !== 403) reached.push(`${method} ${path}: ${status}`)
    }
    t.same(reached, [])
  })

  await t.test("a user's session, passkey and provider are nothing to another", async (t) => {
    t.match(await stranger.send('DELETE', `/me/sessions/${ids['me/sessions']}`), { status: 404 })
    t.match(await owner.send('GET', '/session'), { status: 200 })
  })
})
