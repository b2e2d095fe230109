/** The owner of an organization writes an agent, tries it, publishes it, and edits it as a draft. */
import t from 'tap'
import { inspectPage, withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, STORY_CONFIG, signIn } from './support.ts'

t.test('agents', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { database } = service
  await withPage(t, 'agents', async (page) => {
    const user = await signIn(service, page, { name: 'Anna' })
    const { account } = await database.createAccount({
      name: 'Acme',
      kind: 'organization',
      credit: 100_000_000_000_000n,
    })
    await database.putMember(account.id, user.accountId, 'owner')
    await page.goto(`${service.baseUrl}/console/agents?account=${account.id}`)
    await heading(page, 'Agents').waitFor()
    await page.getByText('This organization has no agents yet.').waitFor()
    await inspectPage(t, page, 'agents-empty')

    await button(page, 'Create an agent').click()
    const dialog = page.getByRole('dialog', { name: 'Create an agent' })
    await dialog.getByLabel('Name').fill('Clerk')
    await dialog.getByLabel('Model').selectOption('fast')
    await dialog.getByLabel('Persona').fill('You are a clerk.')
    await button(dialog, 'Create').click()
    const drawer = page.getByRole('dialog', { name: 'Clerk' })
    await drawer.getByText('Not published').waitFor()
    await drawer.getByLabel('Question').fill('Who are you?')
    await button(drawer, 'Send').click()
    await drawer.getByText('Hello from here').waitFor()
    await button(drawer, 'Publish').click()
    await drawer.getByText('Published', { exact: true }).waitFor()

    await drawer.getByLabel('Persona').fill('You are a polite clerk.')
    await button(drawer, 'Save as a draft').click()
    await drawer.getByText('The draft changes').waitFor()
    await inspectPage(t, page, 'agent')
    await button(drawer, 'Publish').click()
    await drawer.getByText('The draft changes').waitFor({ state: 'detached' })
    await button(drawer, 'Close').click()
    await row(page, 'Clerk').getByText('Published', { exact: true }).waitFor()
    t.match(await database.listAgents(account.id), [{ file: { persona: 'You are a polite clerk.' } }])
    await link(page, 'Members').click()
    await heading(page, 'Members').waitFor()
  })
})
