/** Mails as a mail server gets them: by each user's choice, in their language, and with every value escaped. */
import t from 'tap'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { openMail } from '../../../src/mail/mail.ts'
import { eventually, until } from '../../support/eventually.ts'
import { startMailServer } from '../../support/mail-server.ts'
import { startNotifications } from './support.ts'

const bench = await startNotifications(t)
const { database, sql } = bench
const server = await startMailServer(t)
const mail = openMail({
  url: server.url,
  from: 'Tollgate <noreply@example.com>',
  publicUrl: 'https://gateway.example',
})
t.teardown(() => mail.close())

const newUser = (email: string, name: string, locale: 'en' | 'zh' = 'en') =>
  database.users.create({ email, name, locale, credit: 100n * ONE_CREDIT })
const mailTo = (address: string, count = 1) =>
  eventually(`mail ${count} to ${address}`, () => server.to(address)[count - 1])

t.test('events go to those who want them, in their language', async (t) => {
  bench.worker(t, { mail })
  const ada = await newUser('ada@example.com', 'Ada')
  const li = await newUser('li@example.com', 'Li', 'zh')
  const organization = await database.accounts.create({
    name: '<b>Acme</b> & Co\r\nBcc: all@example.com',
    kind: 'organization',
    credit: 0n,
  })
  const { id } = organization.account
  await database.organizations.putMember(id, ada.accountId, 'owner')
  await database.organizations.putMember(id, li.accountId, 'admin')
  const record = (type: 'balance.low' | 'key.revoked') =>
    database.events.record({
      type,
      accountId: id,
      subjectId: id,
      crossing: null,
      data: { balance: '"1"<i>' },
    })
  await record('balance.low')
  const low = await mailTo('ada@example.com')
  t.match(low.headers, /^Subject: The balance of <b>Acme<\/b> & Co Bcc: all@example.com is low$/m)
  t.notMatch(low.headers, /^Bcc:/m, 'no name makes a header')
  t.match(low.headers, /^Message-ID: <dlv_\w+@gateway.example>$/m)
  t.match(low.text, 'balance: "1"<i>')
  t.match(low.html, '&quot;1&quot;&lt;i&gt;')
  t.notMatch(low.html, /<b>|<i>/)
  t.match(low.html, 'https://gateway.example/console/')

  await database.alerts.setEmailChoices(li.id, id, ['key.revoked'])
  await database.alerts.setEmailChoices(ada.id, id, [])
  await record('key.revoked')
  t.match((await mailTo('li@example.com')).text, '的一个密钥已吊销')
  t.equal(server.to('ada@example.com').length, 1)
  await sql`UPDATE users SET enabled = false WHERE id = ${li.id}`
  await record('key.revoked')
  await until(
    'it is dispatched',
    async () => (await sql`SELECT FROM events WHERE dispatched_at IS NULL`).length === 0,
  )
  t.match(await sql`SELECT count(*)::integer FROM deliveries WHERE user_id = ${li.id}`, [{ count: 1 }])
})

t.test('a mail of the service is sealed until it is sent, and tried again if it can succeed', async (t) => {
  const send = (address: string) =>
    database.deliveries.sendMail(address, {
      mail: 'recovery',
      locale: 'en',
      values: {},
      link: 'https://gateway.example/console/sign-in#link=secret-token',
    })
  await send('later@example.com')
  const row = async () => {
    const [found] = await sql`SELECT * FROM deliveries WHERE address = 'later@example.com'`
    return found!
  }
  t.notMatch((await row()).sealed_mail.toString('latin1'), 'secret-token')
  server.answer('later@example.com', 451)
  bench.worker(t, { mail })
  await until('a first attempt', async () => (await row()).tries === 1)
  t.match((await row()).attempts, [{ status: 451, error: /did not take it/ }])
  server.answer('later@example.com', 250)
  await sql`UPDATE deliveries SET due_at = now() WHERE address = 'later@example.com'`
  t.match((await mailTo('later@example.com')).text, '#link=secret-token')
  await until('it is recorded', async () => (await row()).state === 'delivered')
  t.equal((await row()).sealed_mail, null)
  server.answer('never@example.com', 550)
  await send('never@example.com')
  await until('it has failed for good', async () => {
    const [found] = await sql`SELECT state FROM deliveries WHERE address = 'never@example.com'`
    return found!.state === 'failed'
  })
})

t.test('a mail outlives a wrong password of the mail server', async (t) => {
  const url = server.url.replace('//', '//user:wrong@')
  const locked = openMail({ url, from: 'noreply@example.com', publicUrl: 'https://gateway.example' })
  t.teardown(() => locked.close())
  server.answerLogins(535)
  bench.worker(t, { mail: locked })
  const values = {}
  await database.deliveries.sendMail('patient@example.com', {
    mail: 'recovery',
    locale: 'en',
    values,
    link: 'https://a.example',
  })
  const row = async () => {
    const [found] = await sql`SELECT * FROM deliveries WHERE address = 'patient@example.com'`
    return found!
  }
  await until('a first attempt', async () => (await row()).tries === 1)
  t.match(await row(), { state: 'waiting', attempts: [{ status: 535, error: /did not take it/ }] })
  server.answerLogins(235)
  await sql`UPDATE deliveries SET due_at = now() WHERE address = 'patient@example.com'`
  t.match((await mailTo('patient@example.com')).text, 'https://a.example')
})
