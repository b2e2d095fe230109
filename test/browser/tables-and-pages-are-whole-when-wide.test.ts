/** At 1440 pixels no table of a page is cut off, and an address without a page keeps the navigation. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { heading, link, STORY_CONFIG, signIn } from './support.ts'

const LATENCY_MS = 12_345

t.test('a wide window', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withPage(t, 'wide', async (page) => {
    await signIn(service, page, { name: 'Olivia', role: 'operator' })
    await page.setViewportSize({ width: 1440, height: 900 })
    const isWhole = () =>
      page.evaluate<boolean>(
        "(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector('main section:has(> table)'))",
      )
    await page.route('**/api/manage/v1/channels', async (route) => {
      const response = await route.fetch()
      const { data, ...rest } = await response.json()
      const times = {
        latency_p50_ms: LATENCY_MS,
        latency_p99_ms: LATENCY_MS,
        recent_attempts: 1234,
        error_rate: 0.123,
      }
      const json = { ...rest, data: data.map((channel: object) => ({ ...channel, ...times })) }
      await route.fulfill({ response, json })
    })
    for (const name of ['Models', 'Channels', 'Users']) {
      await link(page, name).click()
      await heading(page, name).waitFor()
      await page.locator('main table').first().waitFor()
      t.ok(await isWhole(), name)
    }
    await link(page, 'Catalog').click()
    const editor = page.locator('main textarea')
    await editor.waitFor()
    const { width = 0 } = (await editor.boundingBox()) ?? {}
    t.ok(width > 1000, `the editor has the width of the page: ${width}`)

    await page.goto(`${service.baseUrl}/console/nope`)
    await heading(page, 'Page not found').waitFor()
    await inspectPage(t, page, 'not-found')
    await link(page, 'Home').click()
    await heading(page, 'Home').waitFor()
  })
})
