/** A customer chooses the columns of a table, their order and widths, and the height of rows; the browser remembers it. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { mouse } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, callsInLog, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

const KEYS = 30
const SCROLLED_PX = 400

/** The headings of the page's table as they are seen, without the time zone. */
const readHeads = async (page: Page): Promise<string[]> => {
  const heads = page.locator('main').getByRole('columnheader')
  return (await heads.allTextContents()).map((text) => text.replace(/ \(.*\)$/, ''))
}

t.test('the layout of tables', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withEachHand(t, 'lays out a table', async (t, { hand, page, look }) => {
    const user = await signIn(service, page, { name: 'Tabea' })
    const { raw } = await service.database.keys.create({
      accountId: user.accountId,
      name: 'key 0',
      accountLogs: true,
    })
    for (let count = 1; count < KEYS; count += 1)
      await service.database.keys.create({ accountId: user.accountId, name: `key ${count}` })

    // The head of a long table stays where it is.
    await hand.press(link(page, 'Keys'))
    await row(page, 'key 0').waitFor()
    const head = page.locator('main').getByRole('columnheader', { name: 'Status' })
    const before = await head.boundingBox()
    await page.getByRole('region', { name: 'Keys' }).evaluate(`(box) => box.scrollTo(0, ${SCROLLED_PX})`)
    t.same(await head.boundingBox(), before, 'the head stays in view')
    await look('keys-scrolled')

    const open = async (table: string) => {
      await hand.press(button(page, `Columns and rows of ${table}`))
      const dialog = page.getByRole('dialog', { name: 'Columns and rows' })
      await dialog.waitFor()
      return dialog
    }
    const dialog = await open('Keys')
    await hand.press(dialog.getByRole('checkbox', { name: 'Last used' }))
    await hand.press(button(dialog, 'Move Status up'))
    await hand.choose(dialog.getByLabel('Height of rows'), 'Compact')
    await hand.write(dialog.getByLabel('Width of Name in pixels'), '300')
    await look('table-settings')
    await hand.press(button(dialog, 'Done'))
    await dialog.waitFor({ state: 'detached' })
    const check = async () => {
      const heads = await readHeads(page)
      t.same(heads.slice(0, 3), ['Name', 'Status', 'Key'])
      t.notOk(heads.includes('Last used'), 'it is hidden')
      const name = page.locator('main').getByRole('columnheader', { name: 'Name' })
      t.equal((await name.boundingBox())?.width, 300)
    }
    await check()
    await page.reload()
    await row(page, 'key 0').waitFor()
    await check()
    await look('keys-laid-out')

    // The same on the list of calls, of which only the rows in view are there.
    t.equal(
      (await service.chat(raw, { model: 'fast', messages: [{ role: 'user', content: 'Hi' }] })).status,
      200,
    )
    await callsInLog(service, raw, 1)
    await hand.press(link(page, 'Calls'))
    await heading(page, 'Calls').waitFor()
    await row(page, 'fast').waitFor()
    if (hand === mouse) {
      // The charts come after the rows.
      await page.locator('main canvas').nth(2).waitFor()
      const status = page.locator('main').getByRole('columnheader', { name: 'Status' })
      const { x, y, width, height } = (await status.boundingBox())!
      await page.mouse.move(x + width - 3, y + height / 2)
      await page.mouse.down()
      await page.mouse.move(x + width + 57, y + height / 2, { steps: 5 })
      await page.mouse.up()
      t.equal((await status.boundingBox())?.width, width + 60, 'the column follows the pointer')
    }
    const calls = await open('Calls')
    await hand.press(button(calls, 'Reset'))
    await hand.press(button(calls, 'Done'))
    t.same(await readHeads(page), ['Time', 'Status', 'Model', 'Key', 'Used', 'Duration', 'Cost'])
  })
})
