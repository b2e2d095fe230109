/** Operators find a refused call by its request id, also where it shares a row with others. */
import t from 'tap'
import { withSharedIds } from '../../../../src/core/call-log/shared-ids.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import { startEngines } from '../../../support/engines.ts'
import { newAccount, openFresh, settlement } from '../support.ts'

t.test('each of the calls of a shared row is found', async (t) => {
  const engines = await startEngines(t, { only: ['postgres'] })
  const { database } = await openFresh(t, engines)
  const account = await newAccount(database)
  const ids = Array.from({ length: 3 }, () => newId('req'))
  const shared = settlement(account)
  const other = settlement(account)
  await database.bookings.book([
    {
      ...shared,
      request_id: ids[0]!,
      status: 'rejected',
      cost: '0',
      call_count: ids.length,
      detail: withSharedIds(null, ids),
    },
    other,
  ])
  for (const id of ids) {
    const { call } = await database.calls.find(id)
    t.match(call, { request_id: ids[0], call_count: 3, account_id: shared.account_id }, id)
  }
  t.match((await database.calls.find(other.request_id)).call, { request_id: other.request_id })
  t.equal((await database.calls.find(newId('req'))).call, null)
  t.equal((await database.calls.find('nothing of ours')).call, null)
})
