/** What a user typed survives an expired session, other pages, a reload, a lost connection and a second tab. */
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { openPasswords } from '../../src/identity/passwords.ts'
import { addAuthenticator, inspectPage, withPage } from '../support/browser.ts'
import { until } from '../support/eventually.ts'
import { borrowService } from '../support/lend-services.ts'
import { testConfig } from '../support/service.ts'
import { button, heading, link, row, signIn } from './support.ts'

const PASSWORD = 'four words make one'
const API = '**/api/**'
const CONFIG = testConfig({
  fast: { simulate: 'text=Hello%20from%20here,prompt_tokens=10,tokens=5' },
  slow: { simulate: 'text=alpha%20beta%20gamma%20delta%20epsilon,tokens=5,tps=1' },
})

const findDialog = (page: Page, name: string): Locator => page.getByRole('dialog', { name })

t.test('typed work', async (t) => {
  const service = await borrowService(t, CONFIG)
  const { database } = service
  const passwordHash = await openPasswords().hash(PASSWORD)
  const setUp = async (page: Page, name: string, from = service) => {
    const user = await signIn(from, page, { name })
    await database.signIn.setPassword(user.id, passwordHash)
    return { ...user, end: () => database.sessions.end(user.id, { allBut: null }) }
  }

  await t.test('what is typed while a form is saved stays, and is a change', (t) =>
    withPage(t, 'saving', async (page) => {
      const user = await setUp(page, 'Sam')
      const { key } = await database.keys.create({ accountId: user.accountId, name: 'before' })
      for (const [path, name] of [
        [`/keys?key=${key.id}`, 'sent'],
        ['/profile', 'Samuel'],
      ] as const) {
        await page.goto(`${service.baseUrl}/console${path}`)
        const field = page.getByLabel('Name', { exact: true })
        const save = button(page, 'Save').first()
        const held = Promise.withResolvers<void>()
        await page.route(API, async (route) => {
          if (route.request().method() !== 'GET') await held.promise
          await route.fallback()
        })
        await field.fill(name)
        const saved = page.waitForResponse((response) => response.request().method() !== 'GET')
        await save.click()
        await field.fill(`${name} later`)
        held.resolve()
        await saved
        await page.waitForResponse((response) => response.request().method() === 'GET')
        await page.unroute(API)
        await page.reload()
        await field.waitFor()
        t.equal(await field.inputValue(), `${name} later`, path)
      }
      t.match(await database.keys.show(key.id), { name: 'sent' })
    }),
  )

  await t.test('an adjustment that is booked empties its form, but not of what was typed since', (t) =>
    withPage(t, 'booking', async (page) => {
      await signIn(service, page, { name: 'Olga', role: 'operator' })
      const { account } = await database.accounts.create({ name: 'Booked', credit: 0n })
      await page.goto(`${service.baseUrl}/console/accounts?open=${account.id}`)
      const credits = page.getByLabel('Credits', { exact: true })
      const reason = page.getByLabel('Reason', { exact: true })
      const ask = async () => {
        await credits.fill('5')
        await reason.fill('the first')
        await button(page, 'Book the adjustment').click()
        return findDialog(page, 'Adjust the balance of Booked')
      }
      const first = await ask()
      const held = Promise.withResolvers<void>()
      await page.route('**/adjustments*', async (route) => {
        await held.promise
        await route.fallback()
      })
      await button(first, 'Book it').click()
      await button(first, 'Cancel').click()
      await credits.fill('7')
      await reason.fill('the next')
      held.resolve()
      await page.getByText('Adjustment booked').waitFor()
      t.same([await credits.inputValue(), await reason.inputValue()], ['7', 'the next'])
      t.equal((await database.accounts.show(account.id)).wallet.balance, 500_000_000n)
      await button(await ask(), 'Book it').click()
      await first.waitFor({ state: 'detached' })
      await until('the form is empty again', async () => (await reason.inputValue()) === '')
      t.equal(await credits.inputValue(), '')
      t.equal((await database.accounts.show(account.id)).wallet.balance, 1_000_000_000n)
    }),
  )

  await t.test('a passkey, or another tab, ends the wait as well', (t) =>
    withPage(t, 'ended two tabs', async (page) => {
      // Browsers take no passkeys at an IP address.
      const baseUrl = service.baseUrl.replace('127.0.0.1', 'localhost')
      await addAuthenticator(page)
      const user = await setUp(page, 'Pia', { ...service, baseUrl })
      await link(page, 'Profile & security').click()
      await button(page, 'Add a passkey').click()
      const named = findDialog(page, 'Add a passkey')
      await named.getByLabel('Name').fill('laptop')
      await button(named, 'Save').click()
      await page.getByText('laptop').waitFor()
      await user.end()
      await link(page, 'Usage').click()
      await button(findDialog(page, 'Your session has ended'), 'Sign in with a passkey').click()
      await page.getByText('There are no calls in this period.').waitFor()

      await user.end()
      await link(page, 'Tasks').click()
      await findDialog(page, 'Your session has ended').waitFor()
      const other = await page.context().newPage()
      await other.goto(`${baseUrl}/console/sign-in`)
      await other.getByLabel('Email').fill(user.email)
      await other.getByLabel('Password').fill(PASSWORD)
      await button(other, 'Sign in').click()
      await heading(other, 'Home').waitFor()
      await findDialog(page, 'Your session has ended').waitFor({ state: 'detached' })
      await page.getByText('No tasks match.').waitFor()
    }),
  )

  await t.test(
    'drafts survive other pages and a reload, and are dropped only where their user says so',
    (t) =>
      withPage(t, 'drafts', async (page) => {
        await setUp(page, 'Dora')
        await link(page, 'Keys').click()
        await button(page, 'Create a key').click()
        const dialog = findDialog(page, 'Create a key')
        await dialog.getByLabel('Name').fill('half')
        await dialog.getByLabel('Requests per minute').fill('1,000')
        await page.reload()
        await dialog.getByText('This is what you typed earlier').waitFor()
        t.equal(await dialog.getByLabel('Name').inputValue(), 'half')
        t.equal(await dialog.getByLabel('Requests per minute').inputValue(), '1000')
        await page.goBack()
        await dialog.waitFor({ state: 'detached' })
        await link(page, 'Usage').click()
        await link(page, 'Keys').click()
        await button(page, 'Create a key').click()
        t.equal(await dialog.getByLabel('Name').inputValue(), 'half')

        await page.keyboard.press('Escape')
        const question = findDialog(page, 'Discard what you typed?')
        await inspectPage(t, page, 'draft-discard')
        await button(question, 'Keep editing').click()
        t.equal(await dialog.getByLabel('Name').inputValue(), 'half')
        await button(dialog, 'Cancel').click()
        await button(question, 'Discard').click()
        await dialog.waitFor({ state: 'detached' })
        await button(page, 'Create a key').click()
        t.equal(await dialog.getByLabel('Name').inputValue(), '')
        await dialog.getByLabel('Name').fill('whole')
        await button(dialog, 'Create').click()
        await button(findDialog(page, 'whole'), 'Done').click()

        await row(page, 'whole').getByRole('link').click()
        const drawer = findDialog(page, 'whole')
        await drawer.getByLabel('Name').fill('renamed')
        await button(drawer, 'Close').click()
        await button(question, 'Keep editing').click()
        await Promise.all([page.getByText('Key changed').waitFor(), button(drawer, 'Save').click()])
        await button(findDialog(page, 'renamed'), 'Close').click()
        await row(page, 'renamed').waitFor()
        await button(page, 'Create a key').click()
        t.equal(await dialog.getByLabel('Name').inputValue(), '', 'what was sent is no draft')
      }),
  )

  await t.test('an answer runs on while its user looks at another page', (t) =>
    withPage(t, 'running', async (page) => {
      await setUp(page, 'Rita')
      await link(page, 'Playground').click()
      await page.getByLabel('Model', { exact: true }).selectOption('slow')
      await page.getByLabel('Message').fill('Count!')
      await button(page, 'Send').click()
      const answer = page.getByRole('region', { name: 'slow' })
      await answer.getByText('alpha').waitFor()
      await link(page, 'Models').click()
      await heading(page, 'Models').waitFor()
      await link(page, 'Playground').click()
      await answer.getByText('alpha beta gamma delta epsilon').waitFor()
    }),
  )

  await t.test('a page that cannot be loaded says so in place, and loads when it can', (t) =>
    withPage(t, 'chunks', async (page) => {
      await setUp(page, 'Olaf')
      await page.route('**/assets/usage*', (route) => route.abort('aborted'))
      await link(page, 'Usage').click()
      await page.getByText('This page could not be loaded.').waitFor()
      await inspectPage(t, page, 'page-not-loaded')
      await link(page, 'Keys').waitFor()
      await page.unroute('**/assets/usage*')
      await heading(page, 'Usage').waitFor()
    }),
  )

  await t.test('without a connection, every page says so and comes back', (t) =>
    withPage(t, 'offline', async (page) => {
      await signIn(service, page, { name: 'Otto', role: 'operator' })
      const names = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents()
      t.ok(names.length > 15)
      await page.route(API, (route) => route.abort('aborted'))
      await page.route('**/console/assets/**', (route) => route.abort('aborted'))
      for (const name of names.filter((one) => one !== 'Home')) {
        await link(page, name).click()
        await page.getByRole('alert').first().waitFor()
        t.match(
          await page.getByRole('alert').first().textContent(),
          /could not be loaded|cannot be reached/,
          name,
        )
        t.ok(await link(page, 'Home').isVisible(), `${name} keeps the navigation`)
      }
      await page.unroute(API)
      await page.unroute('**/console/assets/**')
      await until(
        'the page comes back',
        async () => (await heading(page, 'Profile & security').count()) === 1,
      )
    }),
  )
})
