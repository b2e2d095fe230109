/** An operator invites a person, gives a role and a link, and disables a user; an auditor only reads an account. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { mouse } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

t.test('an operator', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withEachHand(t, 'operator', async (t, { hand, page, look }) => {
    const email = `hopper-${hand === mouse ? 'mouse' : 'keys'}-${process.pid}@example.com`
    const invited = `new-${hand === mouse ? 'mouse' : 'keys'}@example.com`
    const user = await service.database.users.create({ email, name: 'Hopper', credit: 0n })
    const olga = await signIn(service, page, { name: 'Olga', role: 'operator' })
    await hand.press(link(page, 'Users'))
    await heading(page, 'Users').waitFor()
    await hand.press(button(page, 'Invite a person'))
    const dialog = page.getByRole('dialog')
    await hand.write(dialog.getByLabel('Email'), invited)
    await hand.press(button(dialog, 'Create the link'))
    t.match(await dialog.locator('pre').textContent(), /\/console\/sign-up#invitation=[\w-]{43}$/)
    await hand.press(button(dialog, 'Done'))
    await hand.press(button(row(page, invited), 'Revoke'))
    await row(page, invited).getByText('Revoked').waitFor()

    await hand.write(page.getByLabel('Email, name or id'), email)
    await hand.press(button(page, 'Search'))
    await page.waitForURL(/search=hopper/)
    await look('users')
    await hand.press(button(row(page, email), 'Change role'))
    await hand.choose(dialog.getByLabel('Role'), 'Auditor')
    await look('users-role')
    await hand.press(button(dialog, 'Change'))
    await row(page, email).getByText('Auditor').waitFor()
    await hand.press(button(row(page, email), 'Sign-in link'))
    t.match(await dialog.locator('pre').textContent(), /\/console\/sign-in#link=[\w-]{43}$/)
    await hand.press(button(dialog, 'Done'))
    await hand.press(button(row(page, email), 'Disable'))
    await hand.write(dialog.getByRole('textbox'), email)
    await hand.press(button(dialog, 'Disable'))
    await row(page, email).getByText('Disabled').waitFor()
    t.match(await service.database.users.show(user.id), { enabled: false, installationRole: 'auditor' })

    await hand.press(button(row(page, email), 'Enable'))
    await row(page, email).getByText('Active').waitFor()
    await service.database.users.create({
      email: `by-${email}`,
      name: 'Otto',
      installationRole: 'operator',
      credit: 0n,
    })
    await service.database.users.update(olga.id, { installationRole: null })
    await hand.press(button(row(page, email), 'Disable'))
    await hand.write(dialog.getByRole('textbox'), email)
    await hand.press(button(dialog, 'Disable'))
    await dialog.getByText('Only operators of the installation may do this.').waitFor()
  })
})

t.test('an auditor', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { account } = await service.database.accounts.create({ name: 'Audited', credit: 100n })
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
