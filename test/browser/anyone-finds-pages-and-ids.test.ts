/** The command palette goes to pages by name and to what an id names, by keyboard alone. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, row, STORY_CONFIG, signIn } from './support.ts'

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
    const input = page.getByRole('combobox', { name: 'Find a page, a name or any id' })
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

    // Nothing of what is typed at once is lost, and the palette acts.
    await page.keyboard.press('Control+K')
    await page.keyboard.type('create a key', { delay: 0 })
    await page.getByRole('option', { name: 'Create a key' }).waitFor()
    t.equal(await input.inputValue(), 'create a key')
    await page.keyboard.press('Enter')
    await button(page.getByRole('dialog', { name: 'Create a key' }), 'Cancel').click()
    for (const [words, option] of [
      ['lapt', `laptop ${key.id}`],
      ['broken', 'broken broken'],
      ['top up', 'Top up Action'],
    ] as const) {
      await page.keyboard.press('Control+K')
      await page.keyboard.type(words, { delay: 0 })
      await page.getByRole('option', { name: option }).waitFor()
      await page.keyboard.press('Escape')
      await input.waitFor({ state: 'detached' })
    }

    await open()
    await page.keyboard.type('key_0000')
    await page.getByText('Nothing matches.').waitFor()
    await page.keyboard.press('Escape')
    await input.waitFor({ state: 'detached' })
    await heading(page, 'Keys').waitFor()
  })

  await t.test('an operator finds people, accounts and channels by name, and pauses a channel', (t) =>
    withPage(t, 'palette of an operator', async (page) => {
      await signIn(service, page, { name: 'Olga', role: 'operator' })
      const other = await service.database.users.create({
        email: `zaphod-${process.pid}@example.com`,
        name: 'Zaphod',
        installationRole: null,
        credit: 0n,
      })
      for (const [words, option] of [
        ['zaph', `Zaphod ${other.accountId}`],
        ['zaph', `Zaphod zaphod-${process.pid}@example.com`],
        ['simul', 'simulated Channel'],
      ] as const) {
        await page.keyboard.press('Control+K')
        await page.keyboard.type(words, { delay: 0 })
        await page.getByRole('option', { name: option }).waitFor()
        await page.keyboard.press('Escape')
        await page.getByRole('dialog', { name: 'Search' }).waitFor({ state: 'detached' })
      }
      await page.keyboard.press('Control+K')
      await page.keyboard.type('pause simulated', { delay: 0 })
      await page.getByRole('option', { name: 'Pause simulated Action' }).waitFor()
      await inspectPage(t, page, 'palette-operator')
      await page.keyboard.press('Enter')
      await button(row(page, 'simulated'), 'Pause').waitFor()
    }),
  )
})
