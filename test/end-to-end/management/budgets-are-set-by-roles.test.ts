/** Budgets by the management API: who sets, sees and deletes which. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { callConfig } from '../support.ts'

t.test('budgets', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const owner = await signIn(service)
  const stranger = await signIn(service)
  const { body: organization } = await owner.send('POST', '/organizations', { name: 'Acme' })
  const account_id: string = organization.id
  const join = async (role: string) => {
    const person = await signIn(service)
    await owner.send('PUT', `/members/${person.user.accountId}`, { account_id, role })
    return person
  }
  const [admin, billing, member, other] = [
    await join('admin'),
    await join('billing'),
    await join('member'),
    await join('member'),
  ]
  const { body: key } = await owner.send('POST', '/keys', { account_id, name: 'machine' })
  const week = { account_id, amount: '12.5', period: 'week', timezone: 'Europe/Berlin' }
  const member_id = member.user.accountId

  await t.test('the account is for owner and billing, members and keys for owner and admin', async (t) => {
    t.match(await admin.send('PUT', '/budgets', week), {
      status: 403,
      body: { error: { message: /owner or billing/ } },
    })
    t.match(await billing.send('PUT', '/budgets', { ...week, member_id }), { status: 403 })
    t.match(await member.send('PUT', '/budgets', { ...week, member_id }), { status: 403 })
    t.match(await stranger.send('PUT', '/budgets', week), { status: 404 })
    t.match(await billing.send('PUT', '/budgets', week), {
      status: 200,
      body: {
        scope: 'account',
        amount: '12.5',
        spent: '0',
        reserved: '0',
        key_id: null,
        member_id: null,
        name: 'Acme',
      },
    })
    t.match(await admin.send('PUT', '/budgets', { ...week, member_id }), {
      status: 200,
      body: { scope: 'member', member_id, period: 'week', timezone: 'Europe/Berlin' },
    })
    t.match(await admin.send('PUT', '/budgets', { ...week, key_id: key.id, period: 'day' }), {
      status: 200,
      body: { scope: 'key', key_id: key.id, name: 'machine' },
    })
    const { body: again } = await owner.send('PUT', '/budgets', { ...week, amount: '20' })
    const { body: list } = await owner.send('GET', `/budgets?account_id=${account_id}&scope=account`)
    t.match(list.data, [{ id: again.id, amount: '20' }], 'a second one of the same period replaces the first')
  })

  await t.test('what is wrong is named', async (t) => {
    for (const [wrong, message] of [
      [{ timezone: 'Nowhere/City' }, /time zone Nowhere\/City/],
      [{ timezone: "UTC'; DROP TABLE budgets" }, /time zone/],
      [{ amount: '0' }, /^amount: /],
      [{ amount: '-1' }, /^amount: /],
      [{ period: 'hour' }, /^period: /],
      [{ key_id: key.id, member_id }, /^member_id: /],
    ] as const)
      t.match(await owner.send('PUT', '/budgets', { ...week, ...wrong }), {
        status: 400,
        body: { error: { message } },
      })
    for (const missing of [{ key_id: 'key_none' }, { member_id: stranger.user.accountId }])
      t.match(await owner.send('PUT', '/budgets', { ...week, ...missing }), { status: 404 })
  })

  await t.test('a member sees those that cover their keys', async (t) => {
    const scopes = async (by: typeof owner) =>
      (await by.send('GET', `/budgets?account_id=${account_id}`)).body.data
        .map(({ scope }: { scope: string }) => scope)
        .sort()
    t.same(await scopes(owner), ['account', 'key', 'member'])
    t.same(await scopes(member), ['account', 'member'])
    t.same(await scopes(other), ['account'])
    const { body: first } = await owner.send('GET', `/budgets?account_id=${account_id}&limit=2`)
    t.equal(first.has_more, true)
    const { body: rest } = await owner.send(
      'GET',
      `/budgets?account_id=${account_id}&limit=2&cursor=${first.next_cursor}`,
    )
    t.same([rest.data.length, rest.has_more], [1, false])
  })

  await t.test('home names those that are nearly spent, and their end is in the audit record', async (t) => {
    await service.database.budgets.put({
      accountId: account_id,
      scope: 'key',
      subjectId: key.id,
      amount: 1n,
      period: 'month',
      timezone: 'UTC',
    })
    t.same((await owner.send('GET', `/home?account_id=${account_id}`)).body.budgets_near, [])
    const { body } = await owner.send('GET', `/budgets?account_id=${account_id}&key_id=${key.id}`)
    const [{ id }] = body.data
    t.match(await billing.send('DELETE', `/budgets/${id}`), { status: 403 })
    t.match(await stranger.send('DELETE', `/budgets/${id}`), { status: 404 })
    t.match(await admin.send('DELETE', `/budgets/${id}`), { status: 200, body: { id } })
    t.match(await admin.send('DELETE', `/budgets/${id}`), { status: 404 })
    const { body: acts } = await owner.send('GET', `/audit?account_id=${account_id}&action=budget.delete`)
    t.match(acts.data, [{ action: 'budget.delete', actor: `user:${admin.user.id}`, subject_id: id }])
  })
})
