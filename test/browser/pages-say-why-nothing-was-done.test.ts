/** What a reader sees where the service is away, where their session has ended, and where another tab has renewed it. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { openPasswords } from '../../src/identity/passwords.ts'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { bringBack, button, heading, link, row, STORY_CONFIG, signIn, takeAway } from './support.ts'

const PASSWORD = 'four words make one'

async function createKey(page: Page, name: string): Promise<void> {
  await button(page, 'Create a key').click()
  const dialog = page.getByRole('dialog', { name: 'Create a key' })
  await dialog.getByLabel('Name').fill(name)
  await button(dialog, 'Create').click()
}

/** Creates a key on the page Keys. */
async function createdIn(page: Page, name: string): Promise<void> {
  await link(page, 'Keys').click()
  await createKey(page, name)
  await button(page, 'Done').click()
  await row(page, name).waitFor()
}

t.test('refusals', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { database } = service
  const passwordHash = await openPasswords().hash(PASSWORD)

  await t.test('a service that is away', (t) =>
    withPage(t, 'away', async (page) => {
      await signIn(service, page, { name: 'Anna' })
      await link(page, 'Keys').click()
      await heading(page, 'Keys').waitFor()
      await takeAway(page)
      await createKey(page, 'first')
      const dialog = page.getByRole('dialog', { name: 'Create a key' })
      await dialog.getByText('The service cannot be reached').waitFor()
      await inspectPage(t, page, 'service-away')
      await bringBack(page)
      await button(dialog, 'Create').click()
      await button(page, 'Done').click()
      await row(page, 'first').waitFor()

      await takeAway(page)
      await button(page, 'Sign out').click()
      await page.getByText('The service cannot be reached').waitFor()
      await bringBack(page)
      await button(page, 'Sign out').click()
      await heading(page, 'Sign in to Tollgate').waitFor()
    }),
  )

  await t.test('a call of the playground that is refused', (t) =>
    withPage(t, 'refused in the playground', async (page) => {
      await signIn(service, page, { name: 'Cleo', credit: '1' })
      await link(page, 'Playground').click()
      await page.getByLabel('Model', { exact: true }).selectOption('fast')
      await page.getByLabel('Message').fill('Hello!')
      await button(page, 'Send').click()
      await page.getByText('Not charged').waitFor()
      t.equal(await page.getByText('tokens in').count(), 0, 'no estimate of a cost')
      await page.getByRole('link', { name: 'Show the call' }).click()
      await row(page, 'fast').getByText('0.00').first().waitFor()
    }),
  )

  await t.test('a session that has ended', (t) =>
    withPage(t, 'ended', async (page) => {
      const user = await signIn(service, page, { name: 'Ben' })
      await database.signIn.setPassword(user.id, passwordHash)
      const end = () => database.sessions.end(user.id, { allBut: null })
      await createdIn(page, 'first')
      await end()
      await link(page, 'Usage').click()
      await button(
        page.getByRole('dialog', { name: 'Your session has ended' }),
        'Sign in as someone else',
      ).click()
      await heading(page, 'Sign in to Tollgate').waitFor()
      await page.getByLabel('Email').fill(user.email)
      await page.getByLabel('Password').fill(PASSWORD)
      await button(page, 'Sign in').click()
      await heading(page, 'Usage').waitFor()
      await createdIn(page, 'second')
    }),
  )

  await t.test('a session that another tab has renewed', (t) =>
    withPage(t, 'renewed', async (page) => {
      await signIn(service, page, { name: 'Eve' })
      await link(page, 'Keys').click()
      await heading(page, 'Keys').waitFor()
      const other = await page.context().newPage()
      await other.goto(`${service.baseUrl}/console/profile`)
      await other.getByLabel('New password').fill(PASSWORD)
      await button(other, 'Set password').click()
      await other.getByText('Saved').waitFor()
      await page.bringToFront()
      const read = page.waitForResponse((response) => response.url().endsWith('/session'))
      await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))")
      await read
      await createdIn(page, 'first')
    }),
  )
})
