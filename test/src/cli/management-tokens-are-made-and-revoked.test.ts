/** `tollgate token …`, by the same functions as the management API, on a real PostgreSQL. */
import t from 'tap'
import { tokenHash } from '../../../src/core/keys/bearer-token.ts'
import { startDatabase } from '../postgres/support.ts'
import { command, commandsOn, wiringOn } from './support.ts'

const { database } = await startDatabase(t)
const wiring = wiringOn(database, { trial_credit: '5' })
const { json, text, refused } = commandsOn(wiring)

t.test('a token of the installation is printed once, and ends when it is revoked', async (t) => {
  const made = await json(
    'token',
    'create',
    '--name',
    'reports',
    '--scopes',
    'keys,read',
    '--expires',
    '2999-01-01',
  )
  t.match(made, {
    name: 'reports',
    account_id: null,
    scopes: ['read', 'keys'],
    expires_at: '2999-01-01T00:00:00.000Z',
    token: /^tgm_[0-9a-f]{64}$/,
  })
  t.match(await database.managementTokens.find(tokenHash(made.token)), { id: made.id, accountId: null })
  const listed = await json('token', 'list')
  t.match(listed, [{ id: made.id, revoked_at: null }])
  t.notOk('token' in listed[0])
  t.match(await text('token', 'list'), /reports +the installation/)
  t.type((await json('token', 'revoke', made.id)).revoked_at, 'string')
  t.equal(await database.managementTokens.find(tokenHash(made.token)), null)
})

t.test('a token of an account', async (t) => {
  const { id: account } = await json('account', 'create', '--name', 'Acme')
  const words = ['token', 'create', '--account', account, '--name', 'deploy', '--scopes', 'billing']
  const made = await json(...words)
  t.match(made, { account_id: account, scopes: ['billing'], expires_at: null })
  t.match(await text(...words), /token +tgm_/)
  t.equal((await json('token', 'list', '--account', account)).length, 2)
  t.type((await json('token', 'revoke', made.id)).revoked_at, 'string')
})

t.test('what is wrong is refused', async (t) => {
  const words = ['token', 'create', '--name', 'x', '--scopes']
  for (const wrong of ['reed', 'read,', 'read,root'])
    t.equal((await command([...words, wrong], wiring)).code, 2, wrong)
  t.equal((await command([...words, 'read', '--expires', '2020-01-01'], wiring)).code, 2)
  t.match(await refused(...words, 'read', '--account', 'acc_x'), 'acc_x')
  t.match(await refused('token', 'revoke', 'mtk_x'), 'mtk_x')
})
