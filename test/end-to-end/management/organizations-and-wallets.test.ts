/** Accounts, wallets and organizations by the management API: roles, requests for keys, adjustments, the audit record. */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { signIn } from '../../support/manage.ts'
import { callConfig } from '../support.ts'

t.test('organizations and wallets', async (t) => {
  const service = await borrowService(t, callConfig({ fast: { simulate: 'tokens=2' } }))
  const operator = await signIn(service, { role: 'operator' })
  const owner = await signIn(service)
  const admin = await signIn(service)
  const member = await signIn(service)
  const { body: organization } = await owner.send('POST', '/organizations', { name: 'Acme' })
  const account_id = organization.id
  const put = (by: typeof owner, who: typeof owner, role: string) =>
    by.send('PUT', `/members/${who.user.accountId}`, { account_id, role })

  await t.test('an owner makes admins, an admin makes members', async (t) => {
    t.equal(organization.kind, 'organization')
    t.match(await put(admin, admin, 'owner'), { status: 404 }, 'a stranger sees no organization')
    t.match(await put(owner, admin, 'admin'), { status: 200, body: { role: 'admin' } })
    t.match(await put(admin, member, 'owner'), { status: 403 })
    t.match(await put(admin, owner, 'member'), { status: 403 })
    t.match(await put(admin, member, 'member'), { status: 200, body: { role: 'member', spent: '0' } })
    t.match(await put(owner, owner, 'member'), { status: 409, body: { error: { message: /last owner/ } } })
    t.match(await owner.send('DELETE', `/members/${owner.user.accountId}?account_id=${account_id}`), {
      status: 409,
    })
    const { body } = await admin.send('GET', `/members?account_id=${account_id}&limit=2`)
    t.equal(body.data.length, 2)
    const { body: rest } = await admin.send(
      'GET',
      `/members?account_id=${account_id}&limit=2&cursor=${body.next_cursor}`,
    )
    t.equal(rest.data.length, 1)
    t.equal(rest.has_more, false)
  })

  await t.test('an operator who is a member of it sees all of it, as of any other', async (t) => {
    t.match(await member.send('POST', '/key-requests', { account_id, name: 'phone' }), { status: 201 })
    t.match(await owner.send('POST', '/keys', { account_id, name: 'site' }), { status: 201 })
    const seenBy = (who: typeof owner) =>
      Promise.all(
        ['/calls', '/calls/series', '/usage', '/keys', '/key-requests', '/budgets'].map(async (path) => {
          const { status, body } = await who.send('GET', `${path}?account_id=${account_id}`)
          return [path, status, body.data?.length]
        }),
      )
    const before = await seenBy(operator)
    t.match(await put(owner, operator, 'member'), { status: 200 })
    t.same(await seenBy(operator), before)
    t.same(
      (await seenBy(member)).map(([, status]) => status),
      [200, 200, 200, 200, 200, 200],
    )
    t.notSame(await seenBy(member), before, 'a member sees their own')
    t.match(await owner.send('DELETE', `/members/${operator.user.accountId}?account_id=${account_id}`), {
      status: 200,
    })
  })

  await t.test('every member but the last owner leaves, and removes no other one', async (t) => {
    const leave = (by: typeof owner, who: typeof owner, more: Record<string, string> = {}) =>
      by.send('DELETE', `/members/${who.user.accountId}?account_id=${account_id}`, undefined, more)
    for (const role of ['member', 'billing', 'admin', 'owner'] as const) {
      const leaver = await signIn(service)
      t.match(await leave(leaver, leaver), { status: 404 }, 'a stranger has nothing to leave')
      t.match(await put(owner, leaver, role), { status: 200 })
      if (role === 'member' || role === 'billing') {
        t.match(await leave(leaver, member), { status: 403 })
        const denied = /The role .* may not do this/
        t.match(await leave(leaver, owner), { status: 403, body: { error: { message: denied } } })
      }
      t.match(await leave(leaver, leaver), { status: 200, body: { account_id: leaver.user.accountId, role } })
      const { body: session } = await leaver.send('GET', '/session')
      t.same(
        session.accounts.map((account: { kind: string }) => account.kind),
        ['personal'],
      )
      t.match(await leave(leaver, leaver), { status: 404 })
      const { body: acts } = await owner.send('GET', `/audit?account_id=${account_id}&action=member.remove`)
      t.match(acts.data[0], { actor: `user:${leaver.user.id}` })
    }
  })

  await t.test('an admin invites to no more than an admin may give', async (t) => {
    const path = `/organizations/${account_id}/invitations`
    const invite = (by: typeof owner, role: string) =>
      by.send('POST', path, { email: `${role}@example.com`, role })
    const refused = { status: 403, body: { error: { message: /Only an owner/ } } }
    for (const role of ['owner', 'admin']) {
      t.match(await invite(admin, role), refused)
      const { body: made } = await invite(owner, role)
      t.match(await admin.send('POST', `${path}/${made.id}/revoke`, {}), refused)
      t.match(await owner.send('POST', `${path}/${made.id}/revoke`, {}), { status: 200 })
    }
    for (const role of ['billing', 'member'])
      t.match(await invite(admin, role), { status: 201, body: { role } })
    t.match(await invite(operator, 'owner'), { status: 201 }, 'an operator helps')
  })

  await t.test('a member requests a key, an admin issues it with a cap', async (t) => {
    const { body: asked, status } = await member.send('POST', '/key-requests', { account_id, name: 'laptop' })
    t.equal(status, 201)
    const applicant = { member_id: member.user.accountId, member_email: member.user.email }
    t.match(asked, applicant)
    const { body: open } = await admin.send('GET', `/key-requests?account_id=${account_id}&state=pending`)
    t.match(open.data[0], { id: asked.id, ...applicant })
    const limits = { requests_per_minute: 60, concurrency: 2, allowed_addresses: ['10.0.0.0/8'] }
    const approval = { account_id, spend_cap: '50', ...limits }
    for (const odd of [{ allowed_addresses: ['here'] }, { spend_cap: '-1' }])
      t.match(await admin.send('POST', `/key-requests/${asked.id}/approve`, { ...approval, ...odd }), {
        status: 400,
      })
    t.match(await member.send('POST', `/key-requests/${asked.id}/approve`, approval), { status: 403 })
    const { body: issued } = await admin.send('POST', `/key-requests/${asked.id}/approve`, approval)
    t.notOk('key' in issued, 'the admin does not see the key')
    t.match(await admin.send('POST', `/keys/${issued.id}/reveal`, {}), { status: 403 })
    t.match(await admin.send('POST', `/keys/${issued.id}/rotate`, {}), { status: 403 })
    t.match(await member.send('POST', `/keys/${issued.id}/reveal`, {}), {
      status: 200,
      body: { key: /^sk-tollgate-/ },
    })
    const { body: another } = await owner.send('POST', '/keys', { account_id, name: 'theirs' })
    t.match(await member.send('POST', `/keys/${another.id}/reveal`, {}), { status: 403 })
    t.match(issued, {
      spend_cap: '50',
      kind: 'employee',
      ...limits,
      request: { state: 'approved', ...applicant },
    })
    t.match(await admin.send('POST', `/key-requests/${asked.id}/deny`, { account_id }), { status: 409 })
    const { body: seen } = await member.send('GET', `/keys?account_id=${account_id}`)
    t.same(
      seen.data.map(({ id }: { id: string }) => id),
      [issued.id],
    )
    const { body: acts } = await owner.send('GET', `/audit?account_id=${account_id}&action=key_request.`)
    t.match(acts.data, [
      { action: 'key_request.approve', actor: `user:${admin.user.id}`, actor_name: admin.user.email },
      { action: 'key_request.create', actor: `user:${member.user.id}` },
    ])
  })

  await t.test('operators and tokens decide on requests as an owner does', async (t) => {
    const approval = { account_id, spend_cap: '5' }
    const ask = async () =>
      (await member.send('POST', '/key-requests', { account_id, name: 'desk' })).body.id as string
    const tokenOf = async (by: typeof owner, path: string, given: object) => {
      const { body } = await by.send('POST', path, { name: 'ci', scopes: ['keys'], ...given })
      const headers = { cookie: '', authorization: `Bearer ${body.token}` }
      const send: typeof owner.send = (method, to, sent) => by.send(method, to, sent, headers)
      return { send, name: `token:${body.id}` }
    }
    const deciders = [
      { send: operator.send, name: operator.user.accountId },
      await tokenOf(owner, '/tokens', { account_id }),
      await tokenOf(operator, '/installation/tokens', {}),
    ]
    for (const { send, name } of deciders) {
      t.match(await send('POST', `/key-requests/${await ask()}/approve`, approval), {
        status: 200,
        body: { member_id: member.user.accountId, request: { decided_by: name } },
      })
      t.match(await send('POST', `/key-requests/${await ask()}/deny`, { account_id }), {
        status: 200,
        body: { state: 'denied', decided_by: name },
      })
    }
    const open = await ask()
    const { body: other } = await admin.send('POST', '/organizations', { name: 'Other' })
    const foreign = await tokenOf(admin, '/tokens', { account_id: other.id })
    for (const [path, sent] of [
      ['approve', approval],
      ['deny', {}],
    ] as const)
      for (const named of [account_id, other.id])
        t.match(await foreign.send('POST', `/key-requests/${open}/${path}`, { ...sent, account_id: named }), {
          status: 404,
        })
  })

  await t.test('an operator adjusts a wallet once, with a reason; no one else does', async (t) => {
    const path = `/accounts/${account_id}/adjustments`
    const adjustment = { amount: '-2.5', reason: 'charged twice by mistake' }
    t.match(await owner.send('POST', path, adjustment), { status: 403 })
    const send = () => operator.send('POST', path, adjustment, { 'idempotency-key': 'adjust-1' })
    const [one, two] = await Promise.all([send(), send()])
    t.same(one, two)
    t.match(one.body, { balance: '-2.5', entry: { kind: 'adjustment', note: adjustment.reason } })
    t.match(await operator.send('POST', path, { amount: 'much', reason: 'x' }), {
      status: 400,
      body: { error: { message: /^amount: / } },
    })
    t.match(await operator.send('POST', `/accounts/${account_id}/top-ups`, { amount: '1' }), { status: 400 })
    const { body: ledger } = await owner.send('GET', `/accounts/${account_id}/ledger`)
    t.match(ledger.data, [{ amount: '-2.5', actor: `user:${operator.user.id}` }])
    t.match(await member.send('GET', `/accounts/${account_id}/ledger`), { status: 403 })
  })

  await t.test('an operator finds accounts, and disables one', async (t) => {
    t.match(await owner.send('GET', '/accounts'), { status: 403 })
    const { body: found } = await operator.send('GET', `/accounts?search=${account_id}`)
    t.match(found.data, [{ id: account_id, wallet: { balance: '-2.5' } }])
    const { body } = await operator.send('PATCH', `/accounts/${account_id}`, {
      enabled: false,
      requests_per_minute: 60,
    })
    t.match(body, { enabled: false, requests_per_minute: 60, concurrency: null })
    const { body: renamed } = await owner.send('PATCH', `/accounts/${account_id}/name`, { name: 'Acme Ltd' })
    t.equal(renamed.name, 'Acme Ltd')
  })

  await t.test('an owner makes a token with scopes, and revokes it', async (t) => {
    const wanted = { account_id, name: 'ci', scopes: ['read'] }
    t.match(await admin.send('POST', '/tokens', wanted), { status: 403 })
    const { body: made } = await owner.send('POST', '/tokens', wanted)
    t.match(made, { token: /^tgm_[0-9a-f]{64}$/, scopes: ['read'] })
    const { body: list } = await owner.send('GET', `/tokens?account_id=${account_id}`)
    t.match(list.data, [{ id: made.id, prefix: made.token.slice(0, 12) }])
    t.notOk('token' in list.data[0])
    const { body: revoked } = await owner.send('POST', `/tokens/${made.id}/revoke`, {})
    t.ok(revoked.revoked_at)
    t.match(await operator.send('POST', `/installation/tokens/${made.id}/revoke`, {}), { status: 200 })
  })
})
