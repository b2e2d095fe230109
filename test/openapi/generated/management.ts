/** Makes every kind of call of the management API with a token of the installation. */
import { check, dataOf, type TollgateClient, toForm } from './client.ts'

const API = '/api/manage/v1'

/** Makes an account with all that it can have. Returns the secret of a key of it. */
export async function administer(client: TollgateClient): Promise<string> {
  const account = await dataOf(
    client.POST(`${API}/accounts`, { body: { name: 'generated', kind: 'organization' } }),
  )
  const path = { id: account.id }
  const account_id = account.id
  const credited = await dataOf(
    client.POST(`${API}/accounts/{id}/top-ups`, {
      params: { path, header: { 'idempotency-key': 'generated-1' } },
      body: { amount: '100000', note: 'generated' },
    }),
  )
  check(credited !== undefined, 'a top-up is answered')
  await dataOf(
    client.POST(`${API}/accounts/{id}/adjustments`, {
      params: { path, header: { 'idempotency-key': 'generated-2' } },
      body: { amount: '-1.5', reason: 'generated' },
    }),
  )
  await dataOf(client.PATCH(`${API}/accounts/{id}`, { params: { path }, body: { concurrency: 100 } }))
  await dataOf(client.PATCH(`${API}/accounts/{id}/name`, { params: { path }, body: { name: 'renamed' } }))
  check((await dataOf(client.GET(`${API}/accounts`))).data.length > 0, 'there are accounts')
  const ledger = await dataOf(client.GET(`${API}/accounts/{id}/ledger`, { params: { path } }))
  check(
    ledger.data.some(({ amount }) => amount === '100000'),
    'the ledger has the top-up',
  )

  const key = await dataOf(client.POST(`${API}/keys`, { body: { account_id, name: 'generated' } }))
  const of = { path: { id: key.id } }
  await dataOf(client.PATCH(`${API}/keys/{id}`, { params: of, body: { max_price: '1000' } }))
  const rotated = await dataOf(
    client.POST(`${API}/keys/{id}/rotate`, { params: of, body: { grace_seconds: 60 } }),
  )
  await dataOf(client.GET(`${API}/keys/{id}`, { params: of }))
  await dataOf(client.GET(`${API}/keys`, { params: { query: { account_id } } }))
  const other = await dataOf(client.POST(`${API}/keys`, { body: { account_id, name: 'other' } }))
  await dataOf(client.POST(`${API}/keys/{id}/revoke`, { params: { path: { id: other.id } } }))

  const budget = await dataOf(
    client.PUT(`${API}/budgets`, { body: { account_id, amount: '50000', period: 'month' } }),
  )
  await dataOf(client.GET(`${API}/budgets`, { params: { query: { account_id } } }))
  await dataOf(client.DELETE(`${API}/budgets/{id}`, { params: { path: { id: budget.id } } }))

  const token = await dataOf(
    client.POST(`${API}/tokens`, { body: { account_id, name: 'generated', scopes: ['read'] } }),
  )
  await dataOf(client.GET(`${API}/tokens`, { params: { query: { account_id } } }))
  await dataOf(client.POST(`${API}/tokens/{id}/revoke`, { params: { path: { id: token.id } } }))

  const webhook = await dataOf(
    client.POST(`${API}/webhooks`, { body: { account_id, url: 'https://example.com/hook' } }),
  )
  await dataOf(client.GET(`${API}/webhooks`, { params: { query: { account_id } } }))
  await dataOf(client.DELETE(`${API}/webhooks/{id}`, { params: { path: { id: webhook.id } } }))
  await dataOf(client.PATCH(`${API}/alerts`, { body: { account_id, balance_low: '10' } }))
  await uploadKnowledge(client, account_id)
  return rotated.key
}

async function uploadKnowledge(client: TollgateClient, account_id: string): Promise<void> {
  const base = await dataOf(client.POST(`${API}/knowledge-bases`, { body: { account_id, name: 'handbook' } }))
  const file = [new File(['# Bread\n\nBake it in the oven.\n'], 'bread.md')]
  const path = { id: base.id }
  const started = await dataOf(
    client.POST(`${API}/knowledge-bases/{id}/imports`, {
      params: { path },
      body: { file },
      bodySerializer: toForm,
    }),
  )
  const of = { path: { ...path, import_id: started.id } }
  for (;;) {
    const { state, error } = await dataOf(
      client.GET(`${API}/knowledge-bases/{id}/imports/{import_id}`, { params: of }),
    )
    if (state === 'done') break
    check(state === 'queued' || state === 'running', `the import has ended: ${state} ${error}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  const query = { account_id }
  check(
    (await dataOf(client.GET(`${API}/knowledge-bases/{id}/pages`, { params: { path, query } }))).data
      .length === 1,
    'a page',
  )
  await dataOf(client.GET(`${API}/knowledge-bases`, { params: { query } }))
}

/** Reads what the installation shows, and does what changes nothing of value. */
export async function operate(client: TollgateClient): Promise<void> {
  await dataOf(client.GET(`${API}/installation`))
  await dataOf(client.GET(`${API}/installation/health`))
  await dataOf(client.GET(`${API}/installation/calls`))
  await dataOf(client.GET(`${API}/installation/usage`))
  await dataOf(client.GET(`${API}/installation/tasks`))
  await dataOf(client.GET(`${API}/installation/audit`))
  await dataOf(client.GET(`${API}/installation/alerts`))
  await dataOf(client.GET(`${API}/installation/lost-submits`))
  await dataOf(client.GET(`${API}/users`))
  await dataOf(client.GET(`${API}/journals`))
  await dataOf(client.GET(`${API}/partitions`))
  const [channel] = (await dataOf(client.GET(`${API}/channels`))).data
  const params = { path: { id: channel!.id } }
  check(
    (await dataOf(client.POST(`${API}/channels/{id}/pause`, { params }))).state === 'paused',
    'it is paused',
  )
  await dataOf(client.POST(`${API}/channels/{id}/resume`, { params }))
  const { text } = await dataOf(client.GET(`${API}/configuration`))
  await dataOf(client.POST(`${API}/configuration/check`, { body: { text } }))
  await dataOf(client.POST(`${API}/jobs`, { body: { kind: 'verify' } }))
  await dataOf(client.GET(`${API}/jobs`))
  await dataOf(client.GET(`${API}/search`, { params: { query: { q: 'renamed' } } }))
  const stop = new AbortController()
  const live = await dataOf(
    client.GET(`${API}/installation/live`, { parseAs: 'stream', signal: stop.signal }),
  )
  check((await live!.getReader().read()).value !== undefined, 'live data come')
  stop.abort()
}
