/** Links in mails: recovery, another address, invitations. Each works once, for a time, and for its own email. */
import t from 'tap'
import { generateManagementToken, hashToken, shownTokenPrefix } from '../../../src/core/keys/bearer-token.ts'
import { openPasswords } from '../../../src/identity/passwords.ts'
import { connectTo } from '../../support/connections.ts'
import { eventually } from '../../support/eventually.ts'
import { startMailServer } from '../../support/mail-server.ts'
import { MANAGE, type ManageClient, signIn } from '../../support/manage.ts'
import { startService, testConfig } from '../../support/service.ts'

const PASSWORD = 'a long passphrase'
const IS_OVER = {
  status: 400,
  body: { error: { code: 'invalid_request', message: /used|over|ended|valid/ } },
}
const MAX_PER_INVITED = 5
const MAX_PER_INVITER = 30

t.test('mails', async (t) => {
  const mails = await startMailServer(t)
  const service = await startService(t, {
    config: testConfig({ fast: {} }, 'signup: open'),
    env: {
      TOLLGATE_ROLES: 'gateway,settler,tasks',
      SMTP_URL: mails.url,
      SMTP_FROM: 'Tollgate <noreply@example.com>',
    },
  })
  const { baseUrl } = service
  const sql = connectTo(t, service.engines.databaseUrl)

  /** Sends a request as a visitor's browser does. */
  const visit = async (path: string, body: object) => {
    const answer = await fetch(`${baseUrl}${MANAGE}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: baseUrl },
      body: JSON.stringify(body),
    })
    return { status: answer.status, headers: answer.headers, body: await answer.json() }
  }
  /** Returns the token of the link in a mail. */
  const tokenIn = async (address: string, count = 1): Promise<string> => {
    const { text } = await eventually(`mail ${count} to ${address}`, () => mails.to(address)[count - 1])
    return /#(?:link|token|invitation)=([\w-]{43})/.exec(text)![1]!
  }

  await t.test('a link of recovery signs in once, and not when its time is over', async (t) => {
    const { user } = await signIn(service)
    const ask = () => visit('/sign-in/recovery', { email: user.email.toUpperCase() })
    t.match(await ask(), { status: 200, body: { email: user.email } })
    const token = await tokenIn(user.email)
    t.match(await visit('/sign-in/link', { token }), { status: 200, body: { user: { id: user.id } } })
    t.match(await visit('/sign-in/link', { token }), IS_OVER, 'used twice')
    await ask()
    const late = await tokenIn(user.email, 2)
    await sql`UPDATE sign_in_links SET expires_at = now() WHERE user_id = ${user.id}`
    t.match(await visit('/sign-in/link', { token: late }), IS_OVER)
    const unknown = 'nobody@example.com'
    t.match(await visit('/sign-in/recovery', { email: unknown }), { status: 200, body: { email: unknown } })
    t.same(await sql`SELECT FROM deliveries WHERE address = ${unknown}`, [], 'nothing is sent')
  })

  await t.test('a mailbox is its owner’s: who took its address is out once the owner recovers', async (t) => {
    const email = 'victim@example.com'
    const passwords = { thief: 'the passphrase of a thief', owner: PASSWORD }
    const signIn = (password: string) => visit('/sign-in/password', { email, password })
    t.match(await visit('/sign-up', { email, name: 'Thief', password: passwords.thief }), { status: 200 })
    const { headers } = await signIn(passwords.thief)
    const cookie = headers
      .getSetCookie()
      .map((one) => one.split(';')[0])
      .join('; ')
    const seen = () => fetch(`${baseUrl}${MANAGE}/session`, { headers: { cookie } })
    t.equal((await seen()).status, 200)
    const user = (await service.database.users.findByEmail(email))!
    await service.database.signIn.addIdentity(user.id, 'provider', 'thief')
    const managing = generateManagementToken()
    await service.database.managementTokens.create({
      tokenHash: hashToken(managing),
      prefix: shownTokenPrefix(managing),
      name: 'of the thief',
      accountId: user.accountId,
      scopes: ['read'],
      expiresAt: null,
    })
    const managed = () =>
      fetch(`${baseUrl}${MANAGE}/accounts/${user.accountId}`, {
        headers: { authorization: `Bearer ${managing}` },
      })
    t.equal((await managed()).status, 200)

    const ask = () => visit('/sign-in/recovery', { email })
    await ask()
    t.match(await visit('/sign-in/link', { token: await tokenIn(email) }), { status: 200 })
    t.match(await signIn(passwords.thief), { status: 401 })
    t.equal((await seen()).status, 401, 'the session is over')
    t.equal((await managed()).status, 401, 'the token is revoked')
    t.equal(await service.database.signIn.findIdentity('provider', 'thief'), null)

    await service.database.signIn.setPassword(user.id, await openPasswords().hash(passwords.owner))
    await ask()
    t.match(await visit('/sign-in/link', { token: await tokenIn(email, 2) }), { status: 200 })
    t.match(await signIn(passwords.owner), { status: 200 }, 'once is enough: the email is known to be theirs')
  })

  await t.test('another address is in force once its own link was opened', async (t) => {
    const person = await signIn(service)
    const former = person.user.email
    const emailOf = async () => (await service.database.users.show(person.user.id)).email
    const change = (email: string) => person.send('POST', '/me/email', { email })
    t.match(await change('new@example.com'), { status: 200 })
    const token = await tokenIn('new@example.com')
    t.equal(await emailOf(), former, 'not before it is confirmed')
    t.match(await visit('/email/confirm', { token }), { status: 200, body: { email: 'new@example.com' } })
    t.equal(await emailOf(), 'new@example.com')
    const notice = await eventually('the notice to the former address', () => mails.to(former)[0])
    t.match(notice.text, 'new@example.com')
    t.match(await visit('/email/confirm', { token }), IS_OVER, 'used twice')
    await change('late@example.com')
    const late = await tokenIn('late@example.com')
    await sql`UPDATE sign_in_tickets SET expires_at = now() WHERE user_id = ${person.user.id}`
    t.match(await visit('/email/confirm', { token: late }), IS_OVER)
    t.equal(await emailOf(), 'new@example.com')
    const other = await signIn(service)
    t.match(await change(other.user.email), { status: 200 }, 'the answer does not tell that it is taken')
    t.same(await sql`SELECT FROM deliveries WHERE address = ${other.user.email}`, [])
  })

  await t.test('a newer wish, another password and a ban void the links of before', async (t) => {
    const person = await signIn(service)
    const { id } = person.user
    const change = (email: string) => person.send('POST', '/me/email', { email })
    await change('typo@example.com')
    const typo = await tokenIn('typo@example.com')
    await change('right@example.com')
    t.match(await visit('/email/confirm', { token: typo }), IS_OVER, 'the newest wish counts')
    const right = await tokenIn('right@example.com')
    t.match(await visit('/email/confirm', { token: right }), { status: 200 })
    await change('thief@example.com')
    const stolen = await tokenIn('thief@example.com')
    await visit('/sign-in/recovery', { email: 'right@example.com' })
    const recovery = await tokenIn('right@example.com', 2)
    t.match(await person.send('PUT', '/me/password', { password: PASSWORD }), { status: 200 })
    t.match(await visit('/email/confirm', { token: stolen }), IS_OVER, 'a new password voids it')
    t.match(await visit('/sign-in/link', { token: recovery }), IS_OVER, 'a new password voids it')
    const again = await signIn(service, { user: person.user })
    await again.send('POST', '/me/email', { email: 'banned@example.com' })
    const banned = await tokenIn('banned@example.com')
    for (const enabled of [false, true]) await service.database.users.update(id, { enabled })
    t.match(await visit('/email/confirm', { token: banned }), IS_OVER, 'a ban voids it')
  })

  const newOrganization = async (owner: ManageClient): Promise<string> =>
    (await owner.send('POST', '/organizations', { name: 'Acme' })).body.id

  await t.test('an invitation is mailed, and makes one user', async (t) => {
    const owner = await signIn(service)
    const id = await newOrganization(owner)
    const invite = (email: string) => owner.send('POST', `/organizations/${id}/invitations`, { email })
    t.match(
      await invite('carol@example.com'),
      { status: 201, body: { url: null } },
      'the link is in the mail alone',
    )
    const token = await tokenIn('carol@example.com')
    t.match(await visit('/invitations/look-up', { token }), {
      body: { account_name: 'Acme', role: 'member' },
    })
    const sign = (invitation: string) =>
      visit('/sign-up', { name: 'Carol', password: PASSWORD, invitation, email: 'mallory@example.com' })
    t.match(await sign(token), { status: 200, body: { email: 'carol@example.com' } })
    t.match(await sign(token), IS_OVER, 'used twice')
    const members = await service.database.organizations.listMembers(id)
    t.equal(members.length, 2)
    await invite('dan@example.com')
    const late = await tokenIn('dan@example.com')
    await sql`UPDATE invitations SET expires_at = now() WHERE email = 'dan@example.com'`
    t.match(await visit('/invitations/look-up', { token: late }), IS_OVER)
    t.match(await sign(late), IS_OVER)
  })

  await t.test('mails of invitations are limited for an address and for an inviter', async (t) => {
    const owner = await signIn(service)
    const id = await newOrganization(owner)
    const invite = (email: string) => owner.send('POST', `/organizations/${id}/invitations`, { email })
    const tooMany = {
      status: 429,
      body: { error: { code: 'rate_limit_exceeded', message: /Too many invitations.*Try again in/ } },
    }
    const sent = (email: string) => sql`SELECT FROM deliveries WHERE address = ${email}`
    for (let count = 0; count < MAX_PER_INVITED; count++)
      t.equal((await invite('eve@example.com')).status, 201)
    t.match(await invite('Eve@example.com'), tooMany)
    t.equal((await sent('eve@example.com')).length, MAX_PER_INVITED)
    const left = MAX_PER_INVITER - MAX_PER_INVITED
    const many = await Promise.all(
      Array.from({ length: left + 5 }, (_, one) => invite(`p${one}@example.com`)),
    )
    t.equal(many.filter(({ status }) => status === 201).length, left, 'also when they are sent at once')
    t.match(
      many.find(({ status }) => status !== 201),
      tooMany,
    )
    const operator = await signIn(service, { role: 'operator' })
    t.equal(
      (await operator.send('POST', '/invitations', { email: 'x@example.com' })).status,
      201,
      'others go on',
    )
  })
})
