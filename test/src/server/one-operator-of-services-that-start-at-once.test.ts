/** Services that start at once on an empty database: one makes the first operator, and the others start all the same. */
import t from 'tap'
import { tokenHash } from '../../../src/core/keys/bearer-token.ts'
import { firstSignInToken } from '../../../src/server/supervisor/first-operator.ts'
import { startDatabase } from '../postgres/support.ts'

const SERVICES = 3

t.test('one sign-in token comes out, and it signs in', async (t) => {
  const { database } = await startDatabase(t)
  let waiting = 0
  const allLooked = Promise.withResolvers<void>()
  /** Waits until every service has looked for users: none of them finds one. */
  const listUsers = async () => {
    const users = await database.listUsers()
    if (++waiting === SERVICES) allLooked.resolve()
    await allLooked.promise
    return users
  }
  const tokens = await Promise.all(
    Array.from({ length: SERVICES }, () => firstSignInToken({ ...database, listUsers })),
  )
  const [token = '', ...others] = tokens.filter((one) => one !== null)
  t.same(others, [])
  t.equal((await database.listUsers()).length, 1)
  t.equal((await database.listAccounts()).length, 1, 'no account of those that came too late')
  const session = { tokenHash: tokenHash('a session'), address: '192.0.2.1', userAgent: 'a browser' }
  const { userId } = await database.signInByLink(tokenHash(token), session)
  t.match(await database.showUser(userId), { installationRole: 'operator' })
})
