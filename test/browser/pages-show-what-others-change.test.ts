/**
 * A page that is open shows what others change, without a reload: statuses, balances and requests. What was missed while
 * the service was away is there when it is back.
 */
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { ONE_CREDIT } from '../../schemas/money.ts'
import { generateToken, hashToken } from '../../src/core/keys/bearer-token.ts'
import { openPasswords } from '../../src/identity/passwords.ts'
import { demonstration } from '../end-to-end/media/support.ts'
import { openShop } from '../end-to-end/payments/support.ts'
import { post } from '../end-to-end/support.ts'
import { startReceiver } from '../pipelines/notifications/support.ts'
import { inspectPage, withPage } from '../support/browser.ts'
import { until } from '../support/eventually.ts'
import { signIn as manage } from '../support/manage.ts'
import { type LentService, startService } from '../support/service.ts'
import { bringBack, button, heading, link, newOrganization, row, signIn, takeAway } from './support.ts'

const PASSWORD = 'four words make one'
const ROLES = 'gateway,settler,tasks'

interface LivePage {
  readonly path: string
  /** Changes something that the page shows; called twice. */
  change(count: number): Promise<unknown>
  /** Returns what the page shows of this change. */
  shown(page: Page, count: number): Locator
}

interface Organization {
  readonly id: string
  readonly memberId: string
  readonly key: string
  readonly baseId: string
  readonly admin: Awaited<ReturnType<typeof manage>>
}

/** The pages of an organization. */
function listOwnPages(service: LentService, { id, memberId, key, baseId, admin }: Organization) {
  const { database, baseUrl } = service
  const tasks: string[] = []
  const submit = async () => {
    const film = { model: 'demo-video', prompt: 'A fox [simulate: queue=60000]', duration: 6 }
    const answer = await post({ baseUrl }, key, '/v1/videos/generations', film)
    tasks.push(((await answer.json()) as { id: string }).id)
  }
  const adjust = () => database.wallets.adjust(id, 1_000n * ONE_CREDIT, { reason: 'test' })
  const readBalance = async () => (await database.accounts.show(id)).wallet.balance / ONE_CREDIT
  let balance = 0n
  const invite = (name: string) =>
    database.invitations.create({
      tokenHash: hashToken(generateToken()),
      email: `${name}@example.com`,
      accountId: id,
      role: 'member',
      installationRole: null,
    })
  const changeBalance = async () => {
    await adjust()
    balance = await readBalance()
  }
  const showBalance = (page: Page) =>
    page.locator('dl').first().getByText(Number(balance).toLocaleString('en-US')).first()
  const pages: readonly LivePage[] = [
    { path: '/', change: changeBalance, shown: showBalance },
    { path: '/billing', change: changeBalance, shown: showBalance },
    {
      path: '/billing',
      change: (count) =>
        database.budgets.put({
          accountId: id,
          scope: 'account',
          subjectId: id,
          amount: BigInt(count) * 777n * ONE_CREDIT,
          period: 'month',
          timezone: 'UTC',
        }),
      shown: (page, count) => page.getByText((777 * count).toLocaleString('en-US')).first(),
    },
    { path: '/tasks', change: submit, shown: (page, count) => row(page, tasks[count - 1]!) },
    {
      path: '/keys',
      change: (count) => database.keys.create({ accountId: id, name: `another ${count}` }),
      shown: (page, count) => row(page, `another ${count}`),
    },
    {
      path: '/webhooks',
      change: (count) =>
        database.webhooks.create({
          kind: 'webhook',
          accountId: id,
          url: `https://example.com/${count}`,
          description: '',
          events: null,
        }),
      shown: (page, count) => row(page, `https://example.com/${count}`),
    },
    {
      path: '/members',
      change: (count) => invite(`invited-${count}`),
      shown: (page, count) => row(page, `invited-${count}@example.com`),
    },
    {
      path: '/calls?live=on',
      change: () =>
        service.chat(key, { model: 'demo-chat', messages: [{ role: 'user', content: 'Hello!' }] }),
      shown: (page, count) => row(page, 'demo-chat').nth(count - 1),
    },
    {
      path: `/knowledge?base=${baseId}`,
      change: (count) =>
        admin.upload(`/knowledge-bases/${baseId}/imports`, { [`page-${count}.md`]: '# A\n' }),
      shown: (page, count) =>
        page
          .getByRole('listitem')
          .getByText('Done', { exact: true })
          .nth(count - 1),
    },
    {
      path: '/models',
      change: (count) =>
        database.keyRequests.create({ organizationId: id, memberId, name: `wanted ${count}` }),
      shown: (page, count) =>
        link(page, count === 1 ? 'Members 1 request for a key' : `Members ${count} requests for keys`),
    },
  ]
  return pages
}

/** The pages of an operator. */
function listOperatorPages({ database }: LentService, accountId: string): readonly LivePage[] {
  const states = { 1: 'paused', 2: 'draining' } as const
  return [
    {
      path: '/overview',
      change: (count) => database.alerts.recordBreakers([{ channelId: `alarm-${count}`, isOpen: true }]),
      shown: (page, count) => row(page, `alarm-${count}`),
    },
    {
      path: '/channels',
      change: (count) => database.channels.hold('simulated-images', states[count as 1 | 2]),
      shown: (page, count) =>
        row(page, 'simulated-images')
          .getByText(['Paused', 'Drained'][count - 1]!)
          .first(),
    },
    {
      path: '/payments',
      change: (count) =>
        database.payments.create({
          accountId,
          kind: 'checkout',
          credits: 500n * ONE_CREDIT,
          amount: 500n + BigInt(count),
          currency: 'usd',
        }),
      shown: (page, count) => row(page, `5.0${count} USD`),
    },
    {
      path: `/accounts?open=${accountId}`,
      change: (count) =>
        database.wallets.adjust(accountId, BigInt(count) * 333n * ONE_CREDIT, { reason: `gift ${count}` }),
      shown: (page, count) => page.getByText(`gift ${count}`).first(),
    },
    {
      path: '/integrity',
      change: () =>
        until('the verify before has ended', () =>
          database.jobs.start({ kind: 'verify' }).then(
            () => true,
            () => false,
          ),
        ),
      shown: (page, count) => page.getByRole('table', { name: 'Jobs' }).getByRole('row').nth(count),
    },
    {
      path: '/users',
      change: (count) =>
        database.invitations.create({
          tokenHash: hashToken(generateToken()),
          email: `staff-${count}@example.com`,
          accountId: null,
          role: null,
          installationRole: 'auditor',
        }),
      shown: (page, count) => row(page, `staff-${count}@example.com`),
    },
  ]
}

/** Changes what each page shows while it is open, and again while the service is away. */
async function followPages(
  page: Page,
  base: string,
  pages: readonly LivePage[],
  isReady: (page: Page) => Locator,
) {
  for (const { path, change, shown } of pages) {
    await page.goto(`${base}${path}`)
    await isReady(page).waitFor()
    await change(1)
    await shown(page, 1).waitFor()
    await takeAway(page)
    await page.getByText('Connection lost').first().waitFor()
    await shown(page, 1).waitFor()
    await change(2)
    await bringBack(page)
    await shown(page, 2).waitFor()
    await page.getByText('Connection lost').waitFor({ state: 'detached' })
  }
}

/** A dialog hides the heading from readers, not from sight. */
const isRead = (page: Page): Locator => page.locator('h1')

/** Counts the requests of a page from now on. */
function countRequests(page: Page): () => number {
  let count = 0
  page.on('request', (request) => {
    if (request.url().includes('/api/manage/')) count += 1
  })
  return () => count
}

/** Pages that load their charts after their rows. */
const CHARTED = ['Calls', 'All calls']

t.test('live pages', async (t) => {
  const service = await startService(t, {
    config: `${demonstration()}\nwebhooks: { private_addresses: true }\n`,
    env: { TOLLGATE_ROLES: ROLES },
  })
  const { database, baseUrl } = service

  await t.test('each page of an organization follows, and again after a lost connection', (t) =>
    withPage(t, 'follows', async (page) => {
      const user = await signIn(service, page, { name: 'Anna' })
      const { id } = await newOrganization(service, { name: 'Live', credit: 1_000n * ONE_CREDIT }, user)
      const { raw } = await database.keys.create({ accountId: id, name: 'films' })
      const base = await database.knowledge.createBase(id, 'Wiki')
      const admin = await manage(service, { role: 'operator' })
      const organization = { id, memberId: user.accountId, key: raw, baseId: base.id, admin }
      const pages = listOwnPages(service, organization).map((one) => ({
        ...one,
        path: `${one.path}${one.path.includes('?') ? '&' : '?'}account=${id}`,
      }))
      await followPages(page, `${baseUrl}/console`, pages, isRead)
    }),
  )

  await t.test('each page of an operator does', (t) =>
    withPage(t, 'operator follows', async (page) => {
      const user = await signIn(service, page, { name: 'Olga', role: 'operator' })
      await followPages(page, `${baseUrl}/console`, listOperatorPages(service, user.accountId), isRead)
      await database.channels.resume('simulated-images')
    }),
  )

  await t.test('every page keeps what it shows while the service is away, and is then read again', (t) =>
    withPage(t, 'keeps', async (page) => {
      const user = await signIn(service, page, { name: 'Otto', role: 'operator' })
      const { id } = await newOrganization(service, { name: 'Whole', credit: 100n * ONE_CREDIT }, user)
      const { raw } = await database.keys.create({ accountId: id, name: 'whole' })
      await (
        await service.chat(raw, { model: 'demo-chat', messages: [{ role: 'user', content: 'Hi' }] })
      ).text()
      await page.goto(`${baseUrl}/console/?account=${id}`)
      await heading(page, 'Home').waitFor()
      const names = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents()
      t.ok(names.length > 20)
      const main = page.locator('main')
      // Time goes on, and the log has the call a little later.
      const readMain = async () => ((await main.textContent()) ?? '').replace(/\d[\d.,:]*|–/g, '0')
      for (const name of names) {
        await link(page, name).click()
        await heading(page, name.replace(/^Profile.*/, 'Profile & security')).waitFor()
        let before = ''
        await until(`${name} is loaded`, async () => {
          const last = before
          before = await readMain()
          const isWhole = !CHARTED.includes(name) || before.includes('Time per call')
          return before === last && isWhole && !before.includes('Loading')
        })
        await takeAway(page)
        await page.evaluate(`dispatchEvent(new Event('visibilitychange'))`)
        await page.getByText('Connection lost').waitFor()
        t.equal(await readMain(), before, `${name} keeps what it shows`)
        t.equal(await page.getByRole('alert').count(), 0, name)
        const requests = countRequests(page)
        await bringBack(page)
        await page.getByText('Connection lost').waitFor({ state: 'detached' })
        await until(`${name} is read again`, async () => requests() > 1)
        t.equal(await page.getByRole('alert').count(), 0, name)
      }
    }),
  )

  await t.test('a task ends in its list and in its drawer', (t) =>
    withPage(t, 'task ends', async (page) => {
      const user = await signIn(service, page, { name: 'Tess' })
      const { raw } = await database.keys.create({ accountId: user.accountId, name: 'films' })
      await link(page, 'Tasks').click()
      const film = { model: 'demo-video', prompt: 'A fox [simulate: queue=8000,delay=10]', duration: 6 }
      const { id } = (await (await post(service, raw, '/v1/videos/generations', film)).json()) as {
        id: string
      }
      await page.getByRole('link', { name: id }).click()
      const drawer = page.getByRole('dialog', { name: 'Task' })
      await drawer.getByText('Succeeded', { exact: true }).waitFor()
      await drawer.locator('video').waitFor()
      const source = await drawer.locator('video').getAttribute('src')
      const requests = countRequests(page)
      await until('the task is read again', async () => requests() > 4)
      t.equal(await drawer.locator('video').getAttribute('src'), source, 'a player keeps what it plays')
      await button(drawer, 'Close').click()
      await row(page, id).getByText('Succeeded', { exact: true }).waitFor()
    }),
  )

  await t.test('a delivery succeeds after a retry', (t) =>
    withPage(t, 'delivery', async (page) => {
      let isUp = false
      const receiver = await startReceiver(t, (_, response) => {
        response.statusCode = isUp ? 200 : 500
        response.end()
      })
      const user = await signIn(service, page, { name: 'Dina' })
      const { endpoint } = await database.webhooks.create({
        kind: 'webhook',
        accountId: user.accountId,
        url: receiver.url,
        description: '',
        events: null,
      })
      await link(page, 'Webhooks').click()
      await database.webhooks.test({ id: endpoint.id, accountId: user.accountId })
      const delivery = row(page.getByRole('table', { name: 'Deliveries' }), 'webhook.test')
      await delivery.getByText('Waiting', { exact: true }).waitFor()
      await page.getByRole('link', { name: 'webhook.test' }).click()
      const drawer = page.getByRole('dialog', { name: 'Delivery' })
      await drawer.getByText('500').first().waitFor()
      isUp = true
      await drawer.getByText('Delivered', { exact: true }).waitFor()
      await button(drawer, 'Close').click()
      await delivery.getByText('Delivered', { exact: true }).waitFor()
    }),
  )

  await t.test("an admin sees a member's request, and the member the decision", (t) =>
    withPage(t, 'admin', (admin) =>
      withPage(t, 'member', async (member) => {
        const owner = await signIn(service, admin, { name: 'Ada' })
        const { id } = await newOrganization(service, { name: 'Asks', credit: 100n * ONE_CREDIT }, owner)
        const user = await signIn(service, member, { name: 'Max' })
        await database.organizations.putMember(id, user.accountId, 'member')
        await admin.goto(`${baseUrl}/console/members?account=${id}`)
        await heading(admin, 'Members').waitFor()
        await member.goto(`${baseUrl}/console/?account=${id}`)
        await button(member, 'Request a key').click()
        const ask = member.getByRole('dialog')
        await ask.getByLabel('Name').fill('robot')
        await ask.getByRole('button', { name: /Request|Send/ }).click()
        await link(admin, 'Members 1 request for a key').waitFor()
        await button(row(admin, 'robot'), 'Deny').click()
        const deny = admin.getByRole('dialog')
        if (await deny.count()) await deny.getByRole('button', { name: 'Deny' }).click()
        await row(member, 'robot').getByText('Denied', { exact: true }).waitFor()
        await link(admin, 'Members').waitFor()
      }),
    ),
  )

  await t.test('a form follows another tab, except where its user has typed', (t) =>
    withPage(t, 'two tabs', async (page) => {
      const user = await signIn(service, page, { name: 'Dora' })
      const { key } = await database.keys.create({ accountId: user.accountId, name: 'shared' })
      const open = async (tab: Page) => {
        await tab.goto(`${baseUrl}/console/keys?key=${key.id}`)
        const drawer = tab.getByRole('dialog')
        await drawer.getByLabel('Name').waitFor()
        return drawer
      }
      const first = await open(page)
      const other = await page.context().newPage()
      const second = await open(other)
      await first.getByLabel('Name').fill('typed')
      await second.getByLabel('Requests per minute').fill('77')
      await button(second, 'Save').click()
      await until(
        'the other field follows',
        async () => (await first.getByLabel('Requests per minute').inputValue()) === '77',
      )
      t.equal(await first.getByLabel('Name').inputValue(), 'typed')
      t.equal(await page.locator(':focus').getAttribute('name'), 'name', 'the focus stays')
      await button(first, 'Save').click()
      await other.getByRole('dialog', { name: 'typed' }).waitFor()
      t.match(await database.keys.show(key.id), { name: 'typed', limits: { requestsPerMinute: 77 } })
    }),
  )

  await t.test('returning to a tab shows what another tab changed', (t) =>
    withPage(t, 'returns to a tab', async (page) => {
      const user = await signIn(service, page, { name: 'Tom', role: 'operator' })
      const { id } = await newOrganization(service, { name: 'Tabs' }, user)
      const other = await page.context().newPage()
      const create =
        (path: string, open: string, submit: string, labels: Record<string, string>) => async () => {
          await other.goto(`${baseUrl}/console${path}?account=${id}`)
          await button(other, open).click()
          for (const [label, text] of Object.entries(labels))
            await other.getByRole('dialog').getByLabel(label, { exact: true }).fill(text)
          await button(other.getByRole('dialog'), submit).click()
          await other.getByText(Object.values(labels)[0]!).first().waitFor()
        }
      const changes: Record<string, [change: () => Promise<unknown>, text: string]> = {
        '/tokens': [create('/tokens', 'Create a token', 'Create', { Name: 'made beside' }), 'made beside'],
        '/agents': [
          create('/agents', 'Create an agent', 'Create', { Name: 'Written beside', Persona: 'A clerk.' }),
          'Written beside',
        ],
        '/knowledge': [
          create('/knowledge', 'Create a knowledge base', 'Create', { Name: 'Read beside' }),
          'Read beside',
        ],
        '/status': [
          async () => {
            await other.goto(`${baseUrl}/console/overview`)
            await button(other, 'Post a note').click()
            await other.getByLabel('Text', { exact: true }).fill('Posted beside')
            await button(other, 'Post').click()
            await other.getByText('Posted beside').first().waitFor()
          },
          'Posted beside',
        ],
      }
      for (const [path, [change, text]] of Object.entries(changes)) {
        await page.goto(`${baseUrl}/console${path}?account=${id}`)
        await isRead(page).waitFor()
        await change()
        t.equal(await page.getByText(text).count(), 0, `${path} does not know yet`)
        await page.evaluate(`dispatchEvent(new Event('visibilitychange'))`)
        await page.getByText(text).first().waitFor()
      }
    }),
  )

  await t.test(
    'who signs out in one tab is asked to sign in in the other, as themselves or as someone else',
    (t) =>
      withPage(t, 'signs out', async (page) => {
        const user = await signIn(service, page, { name: 'Sue' })
        await database.signIn.setPassword(user.id, await openPasswords().hash(PASSWORD))
        // The link names the account, which someone else may not open.
        await link(page, 'Profile & security').click()
        await page.waitForURL(`**/profile?account=${user.accountId}`)
        await page.getByLabel('Name', { exact: true }).fill('Susan')
        const other = await page.context().newPage()
        await other.goto(`${baseUrl}/console/`)
        await button(other, 'Sign out').click()
        await heading(other, 'Sign in').waitFor()
        const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
        await dialog.getByLabel('Password').fill(PASSWORD)
        await button(dialog, 'Sign in').click()
        await dialog.waitFor({ state: 'detached' })
        t.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'Susan')

        await other.goto(`${baseUrl}/console/`)
        await button(other, 'Sign out').click()
        await dialog.waitFor()
        // A link to the page that is open would only change its hash.
        await other.goto('about:blank')
        await signIn(service, other, { name: 'Tim' })
        await heading(page, 'Home').waitFor()
        await page.getByRole('paragraph').getByText('Tim', { exact: true }).first().waitFor()
        t.equal(
          await page.evaluate(`sessionStorage.getItem('draft profile')`),
          null,
          'no draft is left to others',
        )
      }),
  )

  await t.test('a hidden tab and a session that has ended ask for nothing', (t) =>
    withPage(t, 'awake', async (awake) => {
      await signIn(service, awake, { name: 'Wanda' })
      await link(awake, 'Billing').click()
      /** As long as the other page reads its data several times. */
      const wait = async () => {
        const requests = countRequests(awake)
        await until('others read on', async () => requests() > 12)
      }
      await withPage(t, 'asleep', async (page) => {
        const user = await signIn(service, page, { name: 'Ben' })
        await database.signIn.setPassword(user.id, await openPasswords().hash(PASSWORD))
        await link(page, 'Billing').click()
        await page.getByText('1,000,000').first().waitFor()
        const hide = (state: string) =>
          page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
            dispatchEvent(new Event('visibilitychange'))`)
        await hide('hidden')
        // What was under way arrives.
        await wait()
        const hidden = countRequests(page)
        await wait()
        t.equal(hidden(), 0, 'hidden')
        await database.wallets.adjust(user.accountId, 500n * ONE_CREDIT, { reason: 'test' })
        await hide('visible')
        await page.getByText('1,000,500').first().waitFor()

        await database.sessions.end(user.id, { allBut: null })
        const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
        await dialog.waitFor()
        await wait()
        const ended = countRequests(page)
        await wait()
        t.ok(ended() <= 1, 'signed out: at most what was under way')
        await dialog.getByLabel('Password').fill(PASSWORD)
        await button(dialog, 'Sign in').click()
        await dialog.waitFor({ state: 'detached' })
        await database.wallets.adjust(user.accountId, 500n * ONE_CREDIT, { reason: 'test' })
        await page.getByText('1,001,000').first().waitFor()
      })
    }),
  )

  await t.test('what is open stays while the service is away', (t) =>
    withPage(t, 'away', async (page) => {
      await signIn(service, page, { name: 'Otto' })
      await link(page, 'Billing').click()
      await button(page, 'Set a budget').click()
      const dialog = page.getByRole('dialog', { name: 'Set a budget' })
      await dialog.getByLabel('Amount in credits').fill('4,321')
      await takeAway(page)
      await page.getByText('Connection lost').waitFor()
      await inspectPage(t, page, 'connection-lost')
      t.equal(await dialog.getByLabel('Amount in credits').inputValue(), '4,321')
      await bringBack(page)
      await page.getByText('Connection lost').waitFor({ state: 'detached' })
      t.equal(await dialog.getByLabel('Amount in credits').inputValue(), '4,321')
      await button(dialog, 'Save').click()
      await page.getByText('4,321').first().waitFor()
    }),
  )
})

t.test('a top-up in another tab is in the first one', async (t) => {
  const { service } = await openShop(t, { TOLLGATE_ROLES: 'gateway,settler' })
  await withPage(t, 'first tab', async (page) => {
    await signIn(service, page, { name: 'Dora', credit: '600' })
    await link(page, 'Billing').click()
    await page.getByText('There are no card payments yet.').waitFor()
    const other = await page.context().newPage()
    await other.goto(`${service.baseUrl}/console/billing`)
    await button(other, '500 for 5.00 USD').click()
    await button(other, 'Go to payment').click()
    await other.getByLabel('Card number').fill('4242 4242 4242 4242')
    await button(other, 'Pay').click()
    await other.getByText('Payment booked').waitFor()
    await row(page, '5.00 USD').getByText('Paid', { exact: true }).waitFor()
    await page.getByText('1,100').first().waitFor()
    await page.getByRole('region', { name: 'Ledger' }).getByText('Top-up × 1').waitFor()
  })
})
