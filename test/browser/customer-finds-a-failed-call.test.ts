/** A customer gets the id of a failed call from a colleague, finds it, sees why it failed, and exports the day. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { borrowService } from '../support/lend-services.ts'
import { button, callsInLog, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

const MESSAGES = [{ role: 'user', content: 'Hello!' }]
const SUCCEEDED = 3

t.test('a failed call', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)

  await withEachHand(t, 'failed call', async (t, { hand, page, look }) => {
    const user = await signIn(service, page, { name: 'Carla' })
    const { raw } = await service.database.keys.create({
      accountId: user.accountId,
      name: 'shop',
      accountLogs: true,
    })
    for (let made = 0; made < SUCCEEDED; made += 1)
      t.equal((await service.chat(raw, { model: 'fast', messages: MESSAGES })).status, 200)
    const failed = await service.chat(raw, { model: 'broken', messages: MESSAGES })
    t.ok(failed.status >= 500)
    await callsInLog(service, raw, SUCCEEDED + 1)
    const id = failed.headers.get('x-gateway-trace')!

    await hand.press(link(page, 'Calls'))
    await heading(page, 'Calls').waitFor()
    await row(page, 'broken').waitFor()
    await page.keyboard.press('Control+K')
    await page.getByRole('combobox', { name: 'Find a page, a name or any id' }).waitFor()
    await page.keyboard.type(id)
    await page.getByRole('option', { name: 'broken' }).waitFor()
    await page.keyboard.press('Enter')
    const drawer = page.getByRole('dialog', { name: 'Call' })
    await drawer.getByText(id).first().waitFor()
    await drawer.getByText('upstream_error').first().waitFor()
    await drawer.getByText('Attempt 1', { exact: true }).waitFor()
    await look('call-failed')
    await hand.press(button(drawer, 'Close'))

    await page.getByLabel('Status').selectOption('error,interrupted,rejected')
    await row(page, 'fast').first().waitFor({ state: 'detached' })
    await hand.press(button(page, 'Save this view'))
    const saving = page.getByRole('dialog', { name: 'Save this view' })
    await hand.write(saving.getByLabel('Name'), 'Failures')
    await hand.press(button(saving, 'Save'))
    await page.getByRole('button', { name: 'Failures', exact: true, pressed: true }).waitFor()
    await look('calls-failed')
    await hand.press(button(page, 'Clear'))
    await row(page, 'fast').first().waitFor()
    await hand.press(button(page, 'Failures'))
    await row(page, 'fast').first().waitFor({ state: 'detached' })
    await hand.press(button(page, 'Delete the view Failures'))
    await button(page, 'Failures').waitFor({ state: 'detached' })
    await hand.press(button(page, 'Clear'))
    await row(page, 'fast').first().waitFor()
    const downloading = page.waitForEvent('download')
    await hand.press(button(page, 'CSV'))
    const file = await (await downloading).path()
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    t.equal(lines.length, 1 + SUCCEEDED + 1, 'a head and every call of the day')
    t.equal(lines.filter((line) => line.includes(id)).length, 1)

    for (const [name, field, option, value] of [
      ['Usage', 'Group by', 'Key', 'key'],
      ['Tasks', 'Status', 'Not ended', 'open'],
    ] as const) {
      await hand.press(link(page, name))
      await heading(page, name).waitFor()
      const choice = page.getByRole('combobox', { name: field })
      const before = await choice.inputValue()
      await choice.selectOption(option)
      await hand.press(button(page, 'Save this view'))
      const named = page.getByRole('dialog', { name: 'Save this view' })
      await hand.write(named.getByLabel('Name'), 'Mine')
      await hand.press(button(named, 'Save'))
      await page.getByRole('button', { name: 'Mine', exact: true, pressed: true }).waitFor()
      await choice.selectOption(before)
      await page.getByRole('button', { name: 'Mine', exact: true, pressed: false }).waitFor()
      await hand.press(button(page, 'Mine'))
      await page.getByRole('button', { name: 'Mine', exact: true, pressed: true }).waitFor()
      t.equal(await choice.inputValue(), value, name)
    }
  })
})
