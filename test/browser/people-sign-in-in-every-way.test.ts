/** An invited person signs up, adds a passkey and one-time codes, signs in with each, and confirms who they are. */
import { Secret, TOTP } from 'otpauth'
import t from 'tap'
import { hashToken } from '../../src/core/keys/bearer-token.ts'
import { connect, type Sql } from '../../src/postgres/connection.ts'
import { addAuthenticator, withPage } from '../support/browser.ts'
import { mouse } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import type { LentService } from '../support/service.ts'
import { button, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

const PASSWORD = 'a long passphrase'

/** Asks the database of the service. */
async function ask<Answer>(
  { engines }: LentService,
  question: (sql: Sql) => Promise<Answer>,
): Promise<Answer> {
  const sql = connect(engines.databaseUrl, { max: 1, name: 'test' })
  try {
    return await question(sql)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Makes the last proof of identity of the user's sessions too old for sensitive operations. */
const age = (service: LentService, email: string) =>
  ask(
    service,
    (sql) => sql`
      UPDATE sessions SET confirmed_at = now() - interval '11 minutes'
      WHERE user_id = (SELECT id FROM users WHERE email = ${email})`,
  )

/** Returns how many attempts to sign in count. */
const attempts = (service: LentService) =>
  ask(service, async (sql) => {
    const [row] = await sql<[{ count: bigint }]>`SELECT count(*) FROM sign_in_attempts`
    return row.count
  })

t.test('people', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  // Browsers take no passkeys at an IP address.
  const base = service.baseUrl.replace('127.0.0.1', 'localhost')
  await withEachHand(t, 'people', async (t, { hand, page, look }) => {
    const email = `grace-${hand === mouse ? 'mouse' : 'keys'}-${process.pid}@example.com`
    const token = `an-invitation-${hand === mouse ? 1 : 2}-of-a-test-that-nobody-can-guess`
    await service.database.invitations.create({
      tokenHash: hashToken(token),
      email,
      accountId: null,
      role: null,
      installationRole: null,
    })
    await addAuthenticator(page)
    await page.goto(`${base}/console/sign-up#invitation=${token}`)
    await heading(page, 'Create an account').waitFor()
    t.notMatch(page.url(), token, 'the invitation is in no history')
    t.equal(await page.getByLabel('Email').inputValue(), email)
    await hand.write(page.getByLabel('Name'), 'Grace')
    await hand.write(page.getByLabel('Password'), PASSWORD)
    await look('sign-up')
    await hand.press(button(page, 'Create an account'))
    await heading(page, 'Home').waitFor()

    await hand.press(link(page, 'Profile & security'))
    await hand.press(button(page, 'Add a passkey'))
    await hand.write(page.getByRole('dialog').getByLabel('Name'), 'Laptop')
    await hand.press(button(page.getByRole('dialog'), 'Save'))
    await row(page, 'Laptop').waitFor()
    await hand.press(button(page, 'Set up one-time codes'))
    const dialog = page.getByRole('dialog')
    const secret = ((await dialog.locator('pre').textContent()) ?? '').replaceAll(/\s/g, '')
    await hand.write(
      dialog.getByLabel('One-time code'),
      new TOTP({ secret: Secret.fromBase32(secret) }).generate(),
    )
    await hand.press(button(dialog, 'Confirm'))
    const shown = page.getByRole('dialog', { name: 'Recovery codes' })
    const [code = ''] = ((await shown.locator('pre').textContent()) ?? '').split('\n')
    await hand.press(button(shown, 'Done'))
    await page.getByText('Recovery codes left: 10').waitFor()
    await look('profile')

    await hand.press(button(page, 'Sign out'))
    const before = await attempts(service)
    await hand.press(button(page, 'Sign in with a passkey'))
    await heading(page, 'Home').waitFor()
    t.equal(await attempts(service), before, 'a sign-in that succeeds counts as no attempt')
    await hand.press(button(page, 'Sign out'))
    await hand.write(page.getByLabel('Email'), email.toUpperCase())
    await hand.write(page.getByLabel('Password'), 'another passphrase')
    await hand.press(button(page, 'Sign in'))
    await page.getByText('The email or the password is wrong.').waitFor()
    await look('sign-in')
    await hand.write(page.getByLabel('Password'), PASSWORD)
    await hand.press(button(page, 'Sign in'))
    await hand.write(page.getByLabel('One-time code'), code)
    await hand.press(button(page, 'Sign in'))
    await heading(page, 'Home').waitFor()

    await age(service, email)
    await hand.press(link(page, 'Profile & security'))
    await hand.write(page.getByLabel('New password'), 'another long passphrase')
    await hand.press(button(page, 'Change password'))
    const question = page.getByRole('dialog', { name: 'Confirm that it is you' })
    await hand.write(question.getByLabel('Password'), PASSWORD)
    await look('confirm')
    await hand.press(button(question, 'Confirm'))
    await page.getByText('Saved').waitFor()

    await age(service, email)
    await hand.press(button(row(page, 'Laptop'), 'Remove'))
    await hand.write(page.getByRole('dialog').getByRole('textbox'), 'Laptop')
    await hand.press(button(page.getByRole('dialog'), 'Remove'))
    await hand.press(button(question, 'Use a passkey'))
    await row(page, 'Laptop').waitFor({ state: 'detached' })
  })
})

t.test('the last way to sign in stays, and the page says so', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const baseUrl = service.baseUrl.replace('127.0.0.1', 'localhost')
  await withPage(t, 'last way', async (page) => {
    await addAuthenticator(page)
    await signIn({ ...service, baseUrl }, page, { name: 'Hedy' })
    await link(page, 'Profile & security').click()
    await button(page, 'Add a passkey').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Laptop')
    await button(dialog, 'Save').click()
    await button(row(page, 'Laptop'), 'Remove').click()
    await dialog.getByRole('textbox').fill('Laptop')
    await button(dialog, 'Remove').click()
    await dialog.getByText('last way to sign in').waitFor()
  })
})
