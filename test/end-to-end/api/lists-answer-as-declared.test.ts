/** Every list of the management API and of the interface answers with the fields that the reference declares. */
import t from 'tap'
import { z } from 'zod'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { OPERATIONS } from '../../../schemas/management/index.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { MANAGEMENT_PATH } from '../../../schemas/routes.ts'
import { borrowService } from '../../support/lend-services.ts'
import { type ManageClient, signIn } from '../../support/manage.ts'
import { callConfig } from '../support.ts'

const isList = ({ method, answer: { schema } }: Operation): boolean =>
  method === 'GET' && schema instanceof z.ZodObject && schema.shape.object?.safeParse('list').success === true

/** What a list that takes no cursor says of further pages. */
const WHOLE = { has_more: false, next_cursor: null }

t.test('lists', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const operator = await signIn(service, { role: 'operator' })
  const owner = await signIn(service)
  const { body: organization } = await owner.send('POST', '/organizations', { name: 'Acme' })
  const account_id: string = organization.id
  const { key } = await service.newKey('1000')
  await service.chat(key, { model: 'fast', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] })

  // Several entries of what an owner makes, so that lists have pages.
  const bases: string[] = []
  for (const name of ['a', 'b', 'c']) {
    const made = await owner.send('POST', '/knowledge-bases', { account_id, name })
    bases.push(made.body.id)
    const file = { name, model: 'fast', persona: 'You are brief.' }
    t.equal((await owner.send('POST', '/agents', { account_id, file })).status, 201)
    t.equal((await owner.send('POST', '/tokens', { account_id, name, scopes: ['read'] })).status, 201)
    t.equal((await owner.send('POST', '/keys', { account_id, name })).status, 201)
    t.equal((await owner.send('PUT', '/me/views', { page: 'calls', name, query: 'a=1' })).status, 200)
    const files = { [`${name}.md`]: `---\ntitle: ${name}\n---\nText.` }
    t.equal((await owner.upload(`/knowledge-bases/${bases[0]}/imports`, files)).status, 201)
    await service.database.jobs.cancel(
      (await service.database.jobs.list({ kinds: ['import'], limit: 1 }))[0]!.id,
    )
  }
  for (const kind of ['verify', 'rebuild']) await operator.send('POST', '/jobs', { kind })

  const samples: Readonly<Record<string, string>> = {
    account_id,
    page: 'calls',
    q: 'acme',
    period: '30d',
    group_by: 'model',
  }
  /** The id in the path of a list, by what its path begins with. */
  const ids: Readonly<Record<string, string>> = {
    '/accounts': account_id,
    '/knowledge-bases': bases[0]!,
  }
  const addressOf = (operation: Operation, more: Readonly<Record<string, string>> = {}) => {
    const path = operation.path.replace('{id}', ids[`/${operation.path.split('/')[1]}`] ?? 'none')
    const query = new URLSearchParams(more)
    for (const name of Object.keys(operation.input.shape))
      if (samples[name] !== undefined && !operation.path.includes(`{${name}}`)) query.set(name, samples[name])
    return `${path}?${query}`
  }
  const keyOf = (entry: unknown) => JSON.stringify(entry)

  for (const operation of OPERATIONS.filter(isList)) {
    await t.test(`${operation.method} ${operation.path}`, async (t) => {
      const isOwn = operation.allows === 'signed-in'
      const reader: ManageClient = isOwn ? owner : operator
      const { status, body } = await reader.send('GET', addressOf(operation))
      t.equal(status, 200, JSON.stringify(body.error))
      const read = operation.answer.schema.safeParse(body)
      t.same(read.error?.issues ?? [], [])
      t.equal(body.object, 'list')
      t.type(body.has_more, 'boolean')
      t.ok(body.next_cursor === null || typeof body.next_cursor === 'string')
      t.equal(body.has_more, body.next_cursor !== null)
      if (!('cursor' in operation.input.shape)) {
        t.match(body, WHOLE)
        return
      }

      const paged: unknown[] = []
      let cursor: string | null = null
      do {
        const more: Record<string, string> = { limit: '1', ...(cursor !== null && { cursor }) }
        const next: { readonly body: { data: unknown[]; has_more: boolean; next_cursor: string | null } } =
          await reader.send('GET', addressOf(operation, more))
        t.ok(next.body.data.length <= 1)
        paged.push(...next.body.data)
        cursor = next.body.next_cursor
      } while (cursor !== null && paged.length <= body.data.length)
      t.equal(paged.length >= body.data.length, true, 'pages have all of it')
      t.same(new Set(paged.map(keyOf)).size, paged.length, 'and none twice')
    })
  }

  await t.test('lists of the interface', async (t) => {
    for (const { method, path, key: place, answers, pathParameters } of ENDPOINTS) {
      const content = answers.find((answer) => 'body' in answer && answer.contentType === 'application/json')
      if (method !== 'GET' || place === 'management' || content === undefined || !('body' in content))
        continue
      if (pathParameters !== undefined || path.includes('{') || path.startsWith(MANAGEMENT_PATH)) continue
      // Templates are those of a channel, and there is none.
      if (path.startsWith('/v1/videos/clip-templates')) continue
      const query = path.endsWith('/search') ? '?q=text' : path.endsWith('/pages') ? '?ids=page_1' : ''
      const response = await fetch(`${service.baseUrl}${path}${query}`, {
        headers: { authorization: `Bearer ${key}` },
      })
      t.equal(response.status, 200, path)
      t.same(content.body.schema.safeParse(await response.json()).error?.issues ?? [], [], path)
    }
  })
})
