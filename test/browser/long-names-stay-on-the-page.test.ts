/** Names of 100 characters without a space: pages that show them fit a telephone. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { heading, newOrganization, STORY_CONFIG, signIn } from './support.ts'

const LONG = 'W'.repeat(100)

t.test('long names', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withPage(t, 'long names', async (page) => {
    const account = await newOrganization(
      service,
      { name: LONG },
      await signIn(service, page, { name: 'Anna' }),
    )
    await page.goto(`${service.baseUrl}/console/?account=${account.id}`)
    await heading(page, 'Home').waitFor()
    await page.getByText('Nothing spent').waitFor()
    await inspectPage(t, page, 'home-long-name')
  })
})
