/** A newcomer's first ten minutes: a sign-in link, the first key, a call in the playground, its charge, and the key's end. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import {
  button,
  callsInLog,
  FAST_COST,
  heading,
  link,
  row,
  STORY_CONFIG,
  signIn,
  withEachHand,
} from './support.ts'

const KEY_NAME = 'My first program'
const SECOND_KEY_NAME = 'My second program'

t.test('newcomer', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)

  await t.test('three steps on Home', (t) =>
    withPage(t, 'three steps', async (page) => {
      await signIn(service, page, { name: 'Hope' })
      await page.getByText('The commands appear here as soon as there is a key.').waitFor()
      await button(page, 'Create a key').click()
      const command = page.getByRole('tabpanel').locator('pre')
      await page.getByRole('tabpanel').getByText('Authorization: Bearer sk-tollgate-').waitFor()
      await inspectPage(t, page, 'home-first-key')
      await promisify(execFile)('bash', ['-c', (await command.textContent()) ?? ''])
      await page.getByText('Your first call has arrived.').waitFor()
      await page.getByText(`${FAST_COST}.00`).first().waitFor()
    }),
  )

  await withEachHand(t, 'newcomer', async (t, { hand, page, look }) => {
    await signIn(service, page, { name: 'Ada' })
    t.notMatch(page.url(), '#link', 'the link is in no history')
    await page.getByText('Three steps to your first call').waitFor()
    await look('home')

    await hand.press(link(page, 'Keys'))
    await heading(page, 'Keys').waitFor()
    await page.getByText('This account has no keys yet.').waitFor()
    await look('keys-empty')

    await hand.press(button(page, 'Create a key'))
    const dialog = page.getByRole('dialog')
    await hand.write(dialog.getByLabel('Name'), KEY_NAME)
    await hand.press(dialog.getByLabel('May read the logs of the whole account'))
    await look('keys-create')
    await hand.press(button(dialog, 'Create'))
    const secret = page.getByRole('dialog', { name: KEY_NAME })
    const [key = ''] = /sk-tollgate-[0-9a-f]{64}/.exec((await secret.textContent()) ?? '') ?? []
    await page.mouse.click(1, 1)
    await secret.getByText('Waiting for your first call…').waitFor()
    for (const [program, text] of [
      ['Python', `api_key="${key}"`],
      ['Claude Code', `"ANTHROPIC_AUTH_TOKEN": "${key}"`],
      ['Codex', `experimental_bearer_token = "${key}"`],
      ['curl', `Authorization: Bearer ${key}`],
    ] as const) {
      await hand.press(secret.getByRole('tab', { name: program }))
      await secret.getByRole('tabpanel').getByText(text).waitFor()
    }
    await look('keys-created')
    // What it copies runs as it is, and the page shows the call.
    const command = (await secret.getByRole('tabpanel').locator('pre').textContent()) ?? ''
    await promisify(execFile)('bash', ['-c', command])
    await secret.getByText('Your first call has arrived.').waitFor()
    await secret.getByText(`${FAST_COST}.00`).waitFor()
    await look('keys-first-call')
    await hand.press(button(secret, 'Done'))
    await row(page, KEY_NAME).getByText('Active').waitFor()
    await look('keys')

    await hand.press(button(page, 'Create a key'))
    await hand.write(dialog.getByLabel('Name'), SECOND_KEY_NAME)
    await hand.press(button(dialog, 'Create'))
    const second = page.getByRole('dialog', { name: SECOND_KEY_NAME })
    await second
      .getByText(/sk-tollgate-/)
      .first()
      .waitFor()
    t.notMatch(await second.textContent(), key, 'another key than the first')
    await hand.press(button(second, 'Done'))
    await row(page, SECOND_KEY_NAME).getByText('Active').waitFor()

    const call = { model: 'fast', messages: [{ role: 'user', content: 'Hello!' }] }
    t.equal((await service.chat(key, call)).status, 200, 'the key opens the API')

    await hand.press(link(page, 'Playground'))
    await page.getByLabel('Model', { exact: true }).selectOption('fast')
    await hand.write(page.getByLabel('Message'), 'Hello!')
    await hand.press(button(page, 'Send'))
    await page.getByRole('region', { name: 'fast' }).getByText('Hello from here').waitFor()
    await page.getByText(`${FAST_COST}.00`).waitFor()
    await look('playground')

    await hand.press(page.getByRole('link', { name: 'Show the call' }))
    await row(page, 'Success').waitFor()
    t.match(await row(page, 'Success').textContent(), `${FAST_COST}.00`, 'its row has its charge')
    await look('calls')
    await hand.press(row(page, 'Success').getByRole('link'))
    const drawer = page.getByRole('dialog', { name: 'Call' })
    await drawer.getByText('fast').first().waitFor()
    await look('call')
    await hand.press(button(drawer, 'Close'))

    await callsInLog(service, key, 3)
    await hand.press(link(page, 'Usage'))
    await heading(page, 'Usage').waitFor()
    await row(page, 'fast').waitFor()
    t.match(await row(page, 'fast').textContent(), '48.00', 'all calls are summed up')
    await look('usage')

    await hand.press(link(page, 'Calls'))
    await hand.press(button(page, 'Live'))
    await page.waitForURL(/live=on/)
    await row(page, 'Success').nth(2).waitFor()
    t.equal((await service.chat(key, call)).status, 200)
    await row(page, 'Success').nth(3).waitFor()
    await look('calls-live')
    await hand.press(link(page, 'Keys'))

    await hand.press(button(row(page, KEY_NAME), 'Revoke'))
    const question = page.getByRole('dialog', { name: `Revoke ${KEY_NAME}` })
    t.ok(await button(question, 'Revoke').isDisabled(), 'not before its name is typed')
    await hand.write(question.getByRole('textbox'), KEY_NAME)
    await look('keys-revoke')
    await hand.press(button(question, 'Revoke'))
    await row(page, KEY_NAME).getByText('Revoked').waitFor()
    t.equal((await service.chat(key, call)).status, 401, 'the key is refused')
  })
})
