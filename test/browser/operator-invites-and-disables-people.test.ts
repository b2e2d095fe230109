/** An operator invites a person, gives a role and a link, and disables a user; an auditor only reads an account. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, STORY_CONFIG, signIn } from './support.ts'

t.test('an operator', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const email = `hopper-${process.pid}@example.com`
  const user = await service.database.createUser({ email, name: 'Hopper', credit: 0n })
  await withPage(t, 'operator', async (page) => {
    await signIn(service, page, { name: 'Olga', role: 'operator' })
    await link(page, 'Users').click()
    await heading(page, 'Users').waitFor()
    await button(page, 'Invite a person').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Email').fill('new@example.com')
    await button(dialog, 'Make the link').click()
    t.match(await dialog.locator('pre').textContent(), /\/console\/sign-up#invitation=[\w-]{43}$/)
    await button(dialog, 'Done').click()
    await button(row(page, 'new@example.com'), 'Revoke').click()
    await row(page, 'new@example.com').getByText('Revoked').waitFor()

    await page.getByLabel('Email, name or id').fill(email)
    await button(page, 'Search').click()
    await page.waitForURL(/search=hopper/)
    await page.getByLabel(`Role of ${email}`).selectOption('auditor')
    await inspectPage(t, page, 'users')
    await button(row(page, email), 'Sign-in link').click()
    t.match(await dialog.locator('pre').textContent(), /\/console\/sign-in#link=[\w-]{43}$/)
    await button(dialog, 'Done').click()
    await button(row(page, email), 'Disable').click()
    await dialog.getByRole('textbox').fill(email)
    await button(dialog, 'Disable').click()
    await row(page, email).getByText('Disabled').waitFor()
    t.match(await service.database.showUser(user.id), { enabled: false, installationRole: 'auditor' })
  })
})

t.test('an auditor', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { account } = await service.database.createAccount({ name: 'Audited', credit: 100n })
  await withPage(t, 'auditor', async (page) => {
    await signIn(service, page, { name: 'Ada', role: 'auditor' })
    await page.goto(`${service.baseUrl}/console/accounts?open=${account.id}`)
    const drawer = page.getByRole('dialog', { name: 'Account' })
    await drawer.getByLabel('Requests per minute').waitFor()
    for (const refused of ['Disable', 'Book the adjustment', 'Save limits'])
      t.equal(await button(drawer, refused).count(), 0, refused)
    await inspectPage(t, page, 'account-of-an-auditor')
  })
})
