/** Jobs: one of each kind at a time, run by the settler, with progress, result and audit entry. */
import t from 'tap'
import { eventually } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { callConfig } from '../support.ts'

t.test('jobs', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const operator = await signIn(service, { role: 'operator' })
  const ended = (id: string) =>
    eventually(`${id} ends`, async () => {
      const { body } = await operator.send('GET', `/jobs/${id}`)
      return body.ended_at === null ? undefined : body
    })

  await t.test('a verify is started once and reports what differs', async (t) => {
    const start = () => operator.send('POST', '/jobs', { kind: 'verify' })
    const [one, two] = await Promise.all([start(), start()])
    t.same([one.status, two.status].sort(), [201, 409])
    const { id } = one.status === 201 ? one.body : two.body
    const job = await ended(id)
    t.match(job, { state: 'done', verified: { accounts: Number, entries: Number, differences: Array } })
    t.equal(job.done, job.total)
    t.match(await operator.send('POST', `/jobs/${id}/cancel`, {}), { status: 409 })
    const acts = await service.database.auditRecord.list({ subjectId: id, limit: 10 })
    t.match(acts, [{ action: 'job.verify', actor: `user:${operator.user.id}` }])
    t.match((await operator.send('GET', '/jobs?kind=verify&limit=1')).body.data, [{ id }])
  })

  await t.test('a rebuild counts the rows of the log', async (t) => {
    // A test that used this service earlier may have left calls that only the log has.
    const { body } = await operator.send('POST', '/jobs', { kind: 'rebuild', delete_unbooked: true })
    t.match(await ended(body.id), { error: null, state: 'done', rebuilt: { rows: Number, dropped: Number } })
  })

  await t.test('what does not exist, and what nobody may', async (t) => {
    t.match(await operator.send('POST', '/jobs', { kind: 'odd' }), { status: 400 })
    t.match(await operator.send('GET', '/jobs/job_none'), { status: 404 })
  })
})
