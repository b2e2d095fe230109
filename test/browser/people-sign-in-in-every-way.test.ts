/** An invited person signs up, adds a passkey and one-time codes, signs in with each, and confirms who they are. */
import { Secret, TOTP } from 'otpauth'
import t from 'tap'
import { tokenHash } from '../../src/core/keys/bearer-token.ts'
import { connect } from '../../src/postgres/connection.ts'
import { addAuthenticator, inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import type { LentService } from '../support/service.ts'
import { button, heading, link, row, STORY_CONFIG } from './support.ts'

const PASSWORD = 'a long passphrase'

/** Makes the last proof of identity of the user's sessions too old for sensitive operations. */
async function age({ engines }: LentService, email: string): Promise<void> {
  const sql = connect(engines.databaseUrl, { max: 1, name: 'test' })
  await sql`
    UPDATE sessions SET confirmed_at = now() - interval '11 minutes'
    WHERE user_id = (SELECT id FROM users WHERE email = ${email})`
  await sql.end({ timeout: 1 })
}

t.test('people', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  // Browsers take no passkeys at an IP address.
  const base = service.baseUrl.replace('127.0.0.1', 'localhost')
  const email = `grace-${process.pid}@example.com`
  const token = 'an-invitation-of-a-test-that-nobody-can-guess'
  await service.database.createInvitation({
    tokenHash: tokenHash(token),
    email,
    accountId: null,
    role: null,
    installationRole: null,
  })
  await withPage(t, 'people', async (page) => {
    await addAuthenticator(page)
    await page.goto(`${base}/console/sign-up#invitation=${token}`)
    await heading(page, 'Create an account').waitFor()
    t.notMatch(page.url(), token, 'the invitation is in no history')
    t.equal(await page.getByLabel('Email').inputValue(), email)
    await page.getByLabel('Name').fill('Grace')
    await page.getByLabel('Password').fill(PASSWORD)
    await inspectPage(t, page, 'sign-up')
    await button(page, 'Create an account').click()
    await heading(page, 'Home').waitFor()

    await link(page, 'Profile & security').click()
    await button(page, 'Add a passkey').click()
    await page.getByRole('dialog').getByLabel('Name').fill('Laptop')
    await button(page.getByRole('dialog'), 'Save').click()
    await row(page, 'Laptop').waitFor()
    await button(page, 'Set up one-time codes').click()
    const dialog = page.getByRole('dialog')
    const secret = ((await dialog.locator('pre').textContent()) ?? '').replaceAll(/\s/g, '')
    await dialog.getByLabel('One-time code').fill(new TOTP({ secret: Secret.fromBase32(secret) }).generate())
    await button(dialog, 'Confirm').click()
    const shown = page.getByRole('dialog', { name: 'Recovery codes' })
    const [code = ''] = ((await shown.locator('pre').textContent()) ?? '').split('\n')
    await button(shown, 'Done').click()
    await page.getByText('Recovery codes left: 10').waitFor()
    await inspectPage(t, page, 'profile')

    await button(page, 'Sign out').click()
    await button(page, 'Sign in with a passkey').click()
    await heading(page, 'Home').waitFor()
    await button(page, 'Sign out').click()
    await page.getByLabel('Email').fill(email.toUpperCase())
    await page.getByLabel('Password').fill('another passphrase')
    await button(page, 'Sign in').click()
    await page.getByText('The email or the password is wrong.').waitFor()
    await inspectPage(t, page, 'sign-in')
    await page.getByLabel('Password').fill(PASSWORD)
    await button(page, 'Sign in').click()
    await page.getByLabel('One-time code').fill(code)
    await button(page, 'Sign in').click()
    await heading(page, 'Home').waitFor()

    await age(service, email)
    await link(page, 'Profile & security').click()
    await page.getByLabel('New password').fill('another long passphrase')
    await button(page, 'Change password').click()
    const question = page.getByRole('dialog', { name: 'Confirm that it is you' })
    await question.getByLabel('Password').fill(PASSWORD)
    await inspectPage(t, page, 'confirm')
    await button(question, 'Confirm').click()
    await page.getByText('Saved').waitFor()

    await age(service, email)
    await button(row(page, 'Laptop'), 'Remove').click()
    await page.getByRole('dialog').getByRole('textbox').fill('Laptop')
    await button(page.getByRole('dialog'), 'Remove').click()
    await button(question, 'Use a passkey').click()
    await row(page, 'Laptop').waitFor({ state: 'detached' })
  })
})
