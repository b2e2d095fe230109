import t from 'tap'
import { logQuery } from '../../schemas/call-log/query.ts'
import { taskListQuery } from '../../schemas/tasks/list.ts'

const LISTS = {
  image: taskListQuery('image'),
  video: taskListQuery('video'),
  music: taskListQuery('music'),
  speech: taskListQuery('speech'),
  'the call log': logQuery,
}

for (const [name, query] of Object.entries(LISTS)) {
  const statusOf = (status: string) => query.safeParse({ status }).data?.status
  t.test(`${name}: what a status leaves empty is no filter`, async (t) => {
    const [one, other] = name === 'the call log' ? ['success', 'error'] : ['failed', 'succeeded']
    for (const status of ['', ',', ' , ']) t.same(statusOf(status), [], JSON.stringify(status))
    t.same(statusOf(`${one}, ,${other},`), [one, other])
    for (const status of ['done', `${one},done`, one.toUpperCase()])
      t.equal(statusOf(status), undefined, status)
  })
}
