/** A customer reads the figures of a chart: by pointing at it, by the keyboard, and where there are none. */
import t from 'tap'
import { mouse } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import {
  button,
  callsInLog,
  dragOver,
  FAST_COST,
  heading,
  link,
  STORY_CONFIG,
  signIn,
  withEachHand,
} from './support.ts'

const CALL = { model: 'fast', messages: [{ role: 'user', content: 'Hello!' }] }
const BUCKET = /^\d{4}-\d\d-\d\d/

t.test('charts', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withEachHand(t, 'reads charts', async (t, { hand, page, look }) => {
    const user = await signIn(service, page, { name: 'Carla' })
    const { raw } = await service.database.keys.create({
      accountId: user.accountId,
      name: 'chart',
      accountLogs: true,
    })
    t.equal((await service.chat(raw, CALL)).status, 200)
    t.ok((await service.chat(raw, { ...CALL, model: 'broken' })).status >= 500)
    await callsInLog(service, raw, 2)

    await hand.press(link(page, 'Calls'))
    await heading(page, 'Calls').waitFor()
    const calls = page.getByRole('figure').filter({ has: page.getByRole('slider', { name: 'Calls' }) })
    const plot = calls.getByRole('slider')
    await plot.locator('canvas').waitFor()
    const tooltip = calls.locator('[aria-hidden=true]').filter({ hasText: BUCKET })
    if (hand === mouse) {
      await plot.locator('.u-over').scrollIntoViewIfNeeded()
      const { x, y, width, height } = (await plot.locator('.u-over').boundingBox())!
      await page.mouse.move(x + width - 10, y + height / 2)
    } else {
      // Shift and Tab come from the next control: its own series.
      await button(calls, 'Success').focus()
      await page.keyboard.press('Shift+Tab')
    }
    await tooltip.getByText('Success').waitFor()
    await look('chart-tooltip')
    if (hand !== mouse) {
      t.match(await plot.getAttribute('aria-valuetext'), /Success 1, Error 1/)
      await page.keyboard.press('Home')
      await page.waitForFunction(`document.activeElement?.getAttribute('aria-valuenow') === '0'`)
      t.match(await plot.getAttribute('aria-valuetext'), BUCKET)
      await tooltip.waitFor()
      await page.keyboard.press('Escape')
      await tooltip.waitFor({ state: 'detached' })
      const cost = page.getByRole('slider', { name: 'Cost in credits' })
      t.match(await cost.getAttribute('aria-valuetext'), new RegExp(`Cost ${FAST_COST}`))
    }

    // A series can be hidden, and comes back.
    const success = button(calls, 'Success')
    await hand.press(success)
    t.equal(await success.getAttribute('aria-pressed'), 'false')
    t.notMatch(await plot.getAttribute('aria-valuetext'), /Success/)
    await hand.press(success)
    t.match(await plot.getAttribute('aria-valuetext'), /Success/)

    // A chart that cannot be read says so in its place, and is read again.
    if (hand !== mouse) return
    let isBroken = true
    await page.route('**/calls/series*', (route) =>
      isBroken
        ? route.fulfill({ status: 400, json: { error: { message: 'No figures today' } } })
        : route.continue(),
    )
    await page.reload()
    const failed = page.getByRole('figure').filter({ hasText: 'No figures today' })
    await failed.nth(2).waitFor()
    t.equal(await page.getByRole('alert').filter({ hasText: 'No figures today' }).count(), 1, 'said once')
    await look('chart-failed')
    isBroken = false
    await failed.first().getByRole('button', { name: 'Try again' }).click()
    await plot.waitFor()

    // What is dragged over is the range of the page: whole days here, and calls of this account at least.
    const today = new Date(new Date().toDateString())
    const shift = (days: number) => new Date(today.getTime() + days * 86_400_000).toISOString()
    t.same(await dragOver(page, 0.05, 0.4), [shift(-1), shift(0)], 'the first of two days')
    await page.getByText('No calls match.').waitFor()
    await page.goBack()
    t.same(await dragOver(page, 0.6, 0.95), [shift(0), shift(1)], 'the second')
    await page.getByRole('slider').first().locator('canvas').waitFor()
    await page.getByRole('table').getByText('broken').first().waitFor()
    const period = page.getByLabel(/^Period/)
    t.match(await period.locator('option:checked').textContent(), /00:00:00 – /, 'the filter says so')
    await look('chart-zoomed')
    await link(page, 'Usage').click()
    await page.getByRole('slider').first().locator('canvas').waitFor()
    const [from = '', to] = await dragOver(page, 0.5, 0.99)
    t.equal(to, shift(1), 'up to today')
    t.ok(shift(-17) < from! && from! < shift(-12), `from the middle of thirty days: ${from}`)
  })
})
