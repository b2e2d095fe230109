/** Fields that an act does not have, models that do not exist and times that are past are a 400, which names what was meant. */
import t from 'tap'
import { OPERATIONS } from '../../../schemas/management/index.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { callConfig } from '../support.ts'

const PAST = '2020-01-01T00:00:00Z'
const LATER = '2999-01-01T00:00:00Z'

t.test('what an act does not take', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const operator = await signIn(service, { role: 'operator' })
  const { body: organization } = await operator.send('POST', '/organizations', { name: 'Acme' })
  const account_id: string = organization.id
  const { body: key } = await operator.send('POST', '/keys', {
    account_id,
    name: 'app',
    allowed_models: ['fast'],
  })
  const refused = async (method: string, path: string, message: string, body?: object) => {
    const answer = await operator.send(method, path, body)
    t.match(
      answer,
      { status: 400, body: { error: { code: 'invalid_request', message } } },
      `${method} ${path}`,
    )
  }

  await t.test('fields', async () => {
    const file = { name: 'Clerk', model: 'fast', personna: 'A clerk.' }
    await refused(
      'POST',
      '/keys',
      'expire_at: is no field of this request. Did you mean "expires_at"? model: is no field of this request. Did you mean "allowed_models"?',
      { account_id, name: 'k', expire_at: LATER, model: ['fast'] },
    )
    await refused('PATCH', `/keys/${key.id}`, 'rpm: is no field of this request.', { rpm: 5 })
    await refused('POST', '/agents', 'file.personna: is no field of this request. Did you mean "persona"?', {
      account_id,
      file,
    })
    await refused(
      'GET',
      `/keys?account_id=${account_id}&limt=5`,
      'limt: is no field of this request. Did you mean "limit"?',
    )
    await refused('POST', '/organizations', 'bogus: is no field of this request.', { name: 'x', bogus: 1 })
  })

  await t.test('days and months that no database keeps', async () => {
    const ledger = `/accounts/${account_id}/ledger`
    for (const day of ['0020-02-29', '0000-01-01'])
      await refused('GET', `${ledger}?day=${day}`, 'day: it is not a day of our time.')
    await refused('GET', `${ledger}/months/0000-01`, 'month: it is not a month, such as 2030-01.')
  })

  await t.test('a place where the request has no fields', async () => {
    await refused('PATCH', `/keys/${key.id}`, 'id: differs from the one in the path.', {
      id: 'key_other',
      name: 'k',
    })
    await refused(
      'POST',
      '/keys?expires_at=x',
      'expires_at: is in the query. POST reads its fields from the body.',
      {
        account_id,
        name: 'k',
      },
    )
  })

  await t.test('of no operation', async (t) => {
    for (const { method, path, input } of OPERATIONS)
      t.match(
        input.safeParse({ no_such_field: 1 }).error?.issues.find(({ code }) => code === 'unrecognized_keys'),
        { keys: ['no_such_field'] },
        `${method} ${path}`,
      )
  })

  await t.test('models that the configuration does not have', async (t) => {
    const message = 'allowed_models: The configuration has no model "fasd". Did you mean "fast"?'
    const wrong = { allowed_models: ['fasd', 'fast'] }
    await refused('POST', '/keys', message, { account_id, name: 'k', ...wrong })
    await refused('PATCH', `/keys/${key.id}`, message, wrong)
    await refused('PATCH', `/accounts/${account_id}`, message, wrong)
    const asked = { account_id, id: 'kreq_x', spend_cap: '1', ...wrong }
    await refused('POST', '/key-requests/kreq_x/approve', message, asked)

    await service.database.keys.update(key.id, { allowedModels: ['retired'] })
    const { status } = await operator.send('PATCH', `/keys/${key.id}`, {
      allowed_models: ['retired', 'fast'],
    })
    t.equal(status, 200, 'a model of the key that has left the configuration may stay')
  })

  await t.test('times that are past', async (t) => {
    const message = 'expires_at: is past, and would end it at once. Name a later time.'
    const past = { expires_at: PAST }
    await refused('POST', '/keys', message, { account_id, name: 'k', ...past })
    await refused('PATCH', `/keys/${key.id}`, message, past)
    await refused('POST', '/tokens', message, { account_id, name: 'k', scopes: ['read'], ...past })
    const asked = { account_id, spend_cap: '1', ...past }
    await refused('POST', '/key-requests/kreq_x/approve', message, asked)
    const { status } = await operator.send('PATCH', `/keys/${key.id}`, { expires_at: LATER })
    t.equal(status, 200)
  })
})
