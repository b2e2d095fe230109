/** The command palette goes to pages by name and to what an id names, by keyboard alone. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, STORY_CONFIG, signIn } from './support.ts'

t.test('the palette', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withPage(t, 'palette', async (page) => {
    const user = await signIn(service, page, { name: 'Petra' })
    const { key } = await service.database.keys.create({ accountId: user.accountId, name: 'laptop' })
    t.equal(await page.title(), 'Home · Tollgate')
    const open = async () => {
      await page.keyboard.press('Control+K')
      await page.getByRole('dialog', { name: 'Search' }).waitFor()
    }
    const input = page.getByRole('combobox', { name: 'Find a page, an account or any id' })
    await open()
    await input.waitFor()
    await inspectPage(t, page, 'palette')
    await page.keyboard.type('mod')
    await page.getByRole('option', { name: 'Models' }).waitFor()
    await page.keyboard.press('Enter')
    await heading(page, 'Models').waitFor()
    t.equal(await page.title(), 'Models · Tollgate')

    await open()
    await page.keyboard.type(key.id)
    await page.getByRole('option', { name: `laptop Key ${key.id}` }).waitFor()
    await inspectPage(t, page, 'palette-found')
    await page.keyboard.press('Enter')
    const drawer = page.getByRole('dialog', { name: 'laptop' })
    await drawer.getByLabel('All models, including ones added later').uncheck()
    await drawer.getByLabel('Only these models').fill('fa')
    await page.getByRole('option', { name: 'fast' }).click()
    // The notice goes by itself: it is waited for from before it comes.
    await Promise.all([page.getByText('Key changed').waitFor(), button(drawer, 'Save').click()])
    await inspectPage(t, page, 'key')
    t.match(await service.database.keys.show(key.id), { allowedModels: ['fast'] })
    await button(drawer, 'Close').click()

    await open()
    await page.keyboard.type('key_0000')
    await page.getByText('Nothing has this name or id.').waitFor()
    await page.keyboard.press('Escape')
    await input.waitFor({ state: 'detached' })
    await heading(page, 'Keys').waitFor()
  })
})
