/** An operator watches the calls of all accounts, reads one after the other, and exports those that failed. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseCredits } from '../../schemas/money.ts'
import { mouse } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import {
  button,
  callsInLog,
  chooseFilter,
  heading,
  link,
  row,
  STORY_CONFIG,
  signIn,
  withEachHand,
} from './support.ts'

const MESSAGES = [{ role: 'user', content: 'Hello!' }]
const PHONE = { width: 390, height: 900 }
const DESK = { width: 1440, height: 900 }

t.test('calls of all accounts', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { database } = service

  await withEachHand(t, 'calls of all accounts', async (t, { hand, page, look }) => {
    const people = await Promise.all(
      ['Ines', 'Igor'].map(async (name) => {
        const email = `${name.toLowerCase()}-${hand.name}@example.com`
        const { accountId } = await database.users.create({
          email,
          name: `${name} ${hand.name}`,
          installationRole: null,
          credit: parseCredits('1000000'),
        })
        const { raw } = await database.keys.create({ accountId, name: `${name}'s key`, accountLogs: true })
        return { name: `${name} ${hand.name}`, accountId, raw }
      }),
    )
    const [ines, igor] = people as [(typeof people)[0], (typeof people)[0]]
    t.equal((await service.chat(ines.raw, { model: 'fast', messages: MESSAGES })).status, 200)
    t.ok((await service.chat(igor.raw, { model: 'broken', messages: MESSAGES })).status >= 500)
    await callsInLog(service, ines.raw, 1)
    await callsInLog(service, igor.raw, 1)

    await signIn(service, page, { name: 'Olga', role: 'operator' })
    await hand.press(link(page, 'All calls'))
    await heading(page, 'All calls').waitFor()
    const calls = page.getByRole('table', { name: 'All calls' })
    await row(calls, ines.name).waitFor()
    await row(calls, igor.name).waitFor()

    // Open a call of another account; j and k move on to the next call of any account.
    await hand.press(row(calls, igor.name).getByRole('link').first())
    const failed = page.getByRole('dialog', { name: 'Call · broken · Error' })
    await failed.getByRole('link', { name: igor.name }).waitFor()
    await failed.getByText('Attempt 1', { exact: true }).waitFor()
    await look('all-calls-call')
    await page.keyboard.press('j')
    const next = page.getByRole('dialog', { name: 'Call · fast · Success' })
    await next.getByRole('link', { name: ines.name }).waitFor()
    await page.keyboard.press('k')
    await failed.getByRole('link', { name: igor.name }).waitFor()
    // The URL opens the same call.
    await page.reload()
    await failed.getByRole('link', { name: igor.name }).waitFor()
    await hand.press(button(failed, 'Close'))

    // Live mode shows a call of any account as soon as it ends, with the names of its account and key.
    await chooseFilter({ hand, page }, ines.accountId, `${ines.name} · ${ines.accountId}`)
    await row(calls, igor.name).waitFor({ state: 'detached' })
    const opened = page.waitForResponse((response) => response.url().includes('/installation/calls/live'))
    await hand.press(button(page, 'Live'))
    await opened
    t.equal((await service.chat(ines.raw, { model: 'fast', messages: MESSAGES })).status, 200)
    await row(calls, ines.name).nth(1).waitFor()
    t.equal((await service.chat(igor.raw, { model: 'fast', messages: MESSAGES })).status, 200)
    t.equal((await service.chat(ines.raw, { model: 'broken', messages: MESSAGES })).status >= 500, true)
    await row(calls, 'upstream_error').waitFor()
    t.equal(await row(calls, igor.name).count(), 0, 'the filter holds')
    await hand.press(button(page, 'Live'))
    await page.getByRole('button', { name: 'Live', pressed: false }).waitFor()
    await callsInLog(service, ines.raw, 3)

    await page.getByLabel('Status').selectOption('error,interrupted')
    await row(calls, 'fast').first().waitFor({ state: 'detached' })
    const downloading = page.waitForEvent('download')
    await hand.press(button(page, 'CSV'))
    const download = await downloading
    t.match(download.suggestedFilename(), /^all-calls-/)
    const [head = '', ...lines] = readFileSync(await download.path(), 'utf8')
      .trim()
      .split('\r\n')
    t.ok(head.startsWith('account_id,account_name,channel_id,id,'), head)
    t.match(head, ',cost_credits,')
    t.equal(lines.length, 1)
    t.ok(lines[0]?.startsWith(`${ines.accountId},${ines.name},`))

    if (hand === mouse) {
      await page.setViewportSize(PHONE)
      const card = page.getByRole('listitem').filter({ hasText: ines.name })
      await card.getByRole('link').click()
      await page.getByRole('dialog', { name: 'Call · broken · Error' }).waitFor()
      await button(page.getByRole('dialog'), 'Close').click()
      await page.setViewportSize(DESK)
    }
    await hand.press(button(page, 'Clear'))
    await row(calls, igor.name).first().waitFor()
    await look('all-calls-rows')
  })
})
