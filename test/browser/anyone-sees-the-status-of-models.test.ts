/** A stranger sees which models work; an operator posts a note, updates it and ends it, and the stranger sees that. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { withPage } from '../support/browser.ts'
import { until } from '../support/eventually.ts'
import { HANDS } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

const FAILURES = 2

t.test('status', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { key } = await service.newKey('1000000')
  const call = (model: string) =>
    service.chat(key, { model, max_tokens: 5, messages: [{ role: 'user', content: 'Hello!' }] })

  await withEachHand(t, 'status', async (t, { hand, page, look }) => {
    for (let i = 0; i < FAILURES; i++) await call('broken')
    await call('fast')
    await withPage(t, `stranger ${hand.name}`, async (stranger) => {
      await stranger.goto(`${service.baseUrl}/console/sign-in`)
      await hand.press(stranger.getByRole('link', { name: 'Which models work now' }))
      await heading(stranger, 'Status').waitFor()
      const model = (name: string) => stranger.getByRole('listitem').filter({ hasText: name })
      await until('the failures are known', () => appears(stranger, 'failing'))
      await model('broken').getByText('Failing', { exact: true }).waitFor()
      await model('fast').getByText('Operational', { exact: true }).waitFor()
      await model('fast').getByText('100% of calls succeeded').first().waitFor()
      const days = model('broken').getByRole('slider')
      const today = new Date().toISOString().slice(0, 10)
      t.match(await days.getAttribute('aria-valuetext'), `${today}: 0% of calls succeeded`)
      await days.focus()
      await stranger.keyboard.press('Home')
      t.match(await days.getAttribute('aria-valuetext'), /: No calls$/)
      await days.hover({ position: { x: 60, y: 10 } })
      t.match(await days.getAttribute('aria-valuetext'), /: No calls$/)
      await stranger.getByText('All times are in the time zone').waitFor()
      await look('status', stranger)

      const text = `We look into it (${HANDS.indexOf(hand)}).`
      await signIn(service, page, { name: 'Olga', role: 'operator' })
      await hand.press(link(page, 'Overview'))
      await hand.press(button(page, 'Post a note'))
      const post = page.getByRole('dialog', { name: 'Post a note' })
      await hand.write(post.getByLabel('Text'), text)
      await hand.choose(post.getByLabel('Severity'), 'Outage')
      await look('status-post')
      await hand.press(button(post, 'Post'))
      const note = row(page.getByRole('table', { name: 'Notes on the status page' }), text)
      await note.getByText('Outage', { exact: true }).waitFor()
      await look('overview-status-notes')
      await stranger.getByRole('listitem').filter({ hasText: text }).getByText('All models').waitFor()

      await hand.press(button(note, 'Update'))
      const update = page.getByRole('dialog', { name: 'Update the note' })
      await hand.write(update.getByLabel('What is new'), 'The provider repairs it.')
      await hand.choose(update.getByLabel('Severity'), 'Degraded')
      await hand.press(button(update, 'Add'))
      await note.getByText('Degraded', { exact: true }).waitFor()
      await stranger.getByText('The provider repairs it.').first().waitFor()
      await look('status-note', stranger)

      await hand.press(button(note, 'Resolve'))
      const resolve = page.getByRole('dialog', { name: 'Resolve the note' })
      await hand.write(resolve.getByLabel('Last update'), 'It works again.')
      await hand.press(button(resolve, 'Resolve'))
      await note.waitFor({ state: 'detached' })
      await stranger.getByText('It works again.').first().waitFor()
      await stranger.getByRole('heading', { name: 'Past notes' }).waitFor()
      await look('status-past-note', stranger)

      await hand.press(link(page, 'Home'))
      await hand.press(page.getByRole('link', { name: 'Which models work now' }))
      await heading(page, 'Status').waitFor()
      await hand.press(link(page, 'Home'))
      await heading(page, 'Home').waitFor()
    })
  })
})

/** Returns whether the page says this in its first line by now. */
const appears = async (page: Page, text: string): Promise<boolean> =>
  (await page.getByRole('status').first().textContent())?.includes(text) ?? false
