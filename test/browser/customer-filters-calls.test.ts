/** A customer finds calls by parts of names and by what the calls have, and goes through them one by one. */
import t from 'tap'
import { mouse } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import {
  button,
  chooseFilter,
  FAST_COST,
  heading,
  link,
  row,
  STORY_CONFIG,
  signIn,
  withEachHand,
} from './support.ts'

const MESSAGES = [{ role: 'user', content: 'Hello!' }]

t.test('filters of calls', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)

  await withEachHand(t, 'filters calls', async (t, { hand, page, look }) => {
    const user = await signIn(service, page, { name: 'Fritz' })
    const { raw } = await service.database.keys.create({ accountId: user.accountId, name: 'shop floor' })
    const session = { headers: { 'x-session-id': 'run 7' } }
    t.equal((await service.chat(raw, { model: 'fast', messages: MESSAGES })).status, 200)
    t.equal((await service.chat(raw, { model: 'fast', messages: MESSAGES }, session)).status, 200)
    t.ok((await service.chat(raw, { model: 'broken', messages: MESSAGES })).status >= 500)

    await hand.press(link(page, 'Calls'))
    await heading(page, 'Calls').waitFor()
    // The row of the call that has just ended is there, in the first answer.
    await row(page, 'broken').waitFor()
    const add = page.getByRole('combobox', { name: 'Add a filter' })
    const choose = (typed: string, name: string) => chooseFilter({ hand, page }, typed, name)

    // Each choice shows how many calls have it.
    await page.getByRole('option', { name: 'Failed (1)' }).waitFor({ state: 'attached' })
    await page.getByRole('option', { name: 'Success (2)' }).waitFor({ state: 'attached' })
    if (hand === mouse) {
      await add.click()
      await page.getByRole('option', { name: 'fast', exact: true }).getByText('2', { exact: true }).waitFor()
      await page.keyboard.press('Escape')
    }

    for (const [typed, option, chip, kept, gone] of [
      ['brok', 'broken', 'Model: broken', 'broken', 'fast'],
      ['fas', 'Model contains “fas”', 'Model contains: fas', 'fast', 'broken'],
      ['upstr', 'upstream_error', 'Error code: upstream_error', 'broken', 'fast'],
      ['run', 'run 7', 'Session: run 7', 'fast', 'broken'],
      ['FLOOR', 'Key contains “FLOOR”', 'Key contains: FLOOR', 'fast', null],
    ] as const) {
      await choose(typed, option)
      const remove = button(page, `Remove the filter ${chip}`)
      await remove.waitFor()
      await row(page, kept).first().waitFor()
      if (gone !== null) await row(page, gone).first().waitFor({ state: 'detached' })
      if (typed === 'fas') await look('calls-filtered')
      await hand.press(remove)
      await remove.waitFor({ state: 'detached' })
      if (gone !== null) await row(page, gone).first().waitFor()
    }
    // A filter is turned around on its chip; numbers are bounds.
    await choose('brok', 'broken')
    await hand.press(button(page, 'Model: broken'))
    await button(page, 'Remove the filter Model is not: broken').waitFor()
    await row(page, 'fast').first().waitFor()
    await row(page, 'broken').first().waitFor({ state: 'detached' })
    await hand.press(button(page, 'Remove the filter Model is not: broken'))
    await choose(`> ${Number(FAST_COST) - 1}`, `Cost in credits above ${Number(FAST_COST) - 1}`)
    await row(page, 'fast').first().waitFor()
    await row(page, 'broken').first().waitFor({ state: 'detached' })
    await hand.press(button(page, `Remove the filter Cost in credits above: ${Number(FAST_COST) - 1}`))
    await choose('600 s', 'Longer than 600 s')
    await page.getByText('No calls match.').waitFor()
    await hand.press(button(page, 'Clear'))
    await choose('nothing like this', 'Model contains “nothing like this”')
    await page.getByText('No calls match.').waitFor()
    await hand.press(button(page, 'Clear'))

    // Keys without a field: the list of all, the filter, the first call.
    await heading(page, 'Calls').click()
    await page.keyboard.press('?')
    const shortcuts = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
    await shortcuts.getByText('Open the next call').waitFor()
    await look('shortcuts')
    await page.keyboard.press('Escape')
    await shortcuts.waitFor({ state: 'detached' })
    await heading(page, 'Calls').click()
    await page.keyboard.press('/')
    await page.waitForFunction(`document.activeElement?.ariaLabel === 'Add a filter'`)
    t.equal(await add.inputValue(), '', 'the key is not typed')
    await page.keyboard.press('Escape')
    await heading(page, 'Calls').click()
    await page.keyboard.press('j')
    await page.getByRole('dialog', { name: 'Call · broken · Error' }).waitFor()
    // Beside the call, the list stays in use.
    if (hand === mouse) await row(page, 'fast').first().getByRole('link').click()
    else await page.keyboard.press('j')
    await page.getByRole('dialog', { name: 'Call · fast · Success' }).waitFor()
    await look('call-beside')
    await hand.press(button(page.getByRole('dialog'), 'Close'))

    await hand.press(row(page, 'broken').getByRole('link'))
    const first = page.getByRole('dialog', { name: 'Call · broken · Error' })
    await first.waitFor()
    await page.keyboard.press('j')
    await page.getByRole('dialog', { name: 'Call · fast · Success' }).waitFor()
    t.ok(await button(page, 'Previous k').isEnabled())
    await page.keyboard.press('k')
    await first.waitFor()
    t.ok(await button(page, 'Previous k').isDisabled(), 'it is the newest')
  })
})
