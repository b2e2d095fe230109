import t from 'tap'
import { settlement } from '../../src/postgres/support.ts'
import { CopyBench } from '../call-log/usage-copy-support.ts'

const bench = await CopyBench.open(t)

t.test('a task’s id and links are in the call log as settled, whatever characters they have', async (t) => {
  const { database, callLog, account } = bench
  const expires = 1_760_600_000_123
  const urls = ['https://files.test/a.png?x=1&y=%20', "https://files.test/it's\\here\t[1],2"]
  const one = settlement(account, {
    task_id: 'vid_1',
    result_urls: urls,
    result_expires_at: expires,
    unit_count: '4',
    unit_type: 'video',
  })
  const other = settlement(account, { task_id: 'vid_2', result_urls: ['https://files.test/for-ever'] })
  const call = settlement(account)
  await database.bookings.book([one, other, call])
  const copier = await bench.newCopier(t)
  await bench.untilCopied()
  await copier.stop()
  const found = async (requestId: string) => {
    const { call: row } = await database.calls.find(requestId)
    return {
      row: row!,
      logged: (await callLog.findCall({ accountId: account, keyId: null, id: row!.id }))!,
    }
  }
  const first = await found(one.request_id)
  t.same(first.row.result_urls, urls)
  t.match(first.row, { task_id: 'vid_1', result_expires_at: new Date(expires).toISOString() })
  t.match(first.logged, {
    task_id: 'vid_1',
    result_urls: [urls[0], 'https://files.test/it%27s%5Chere\t[1],2'],
    result_expires_at: new Date(expires).toISOString(),
  })
  t.match((await found(other.request_id)).logged, {
    task_id: 'vid_2',
    result_urls: ['https://files.test/for-ever'],
    result_expires_at: null,
  })
  t.match((await found(call.request_id)).logged, {
    task_id: null,
    result_urls: { length: 0 },
    result_expires_at: null,
  })
})
